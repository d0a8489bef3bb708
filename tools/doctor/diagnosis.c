/* diagnosis.c - adds diagnoses to those of `gpushare doctor`. */
#include "doctor.h"

#include "cli/term.h"
#include "cli/tool.h"

void diagnosis_add(struct doctor *doctor, enum doctor_verdict verdict, const char *check,
                   const char *format, ...) {
    va_list args;
    va_start(args, format);
    TOOL_APPEND(doctor->list, doctor->count,
                (struct diagnosis){verdict, check, term_format(format, args), NULL});
    va_end(args);
}

void diagnosis_remedy(struct doctor *doctor, const char *format, ...) {
    va_list args;
    va_start(args, format);
    doctor->list[doctor->count - 1].remedy = term_format(format, args);
    va_end(args);
}
