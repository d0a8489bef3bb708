/* diagnosis.c - adds diagnoses to those of `gpushare doctor`. */
#include "doctor.h"

#include "cli/term.h"
#include "cli/tool.h"

void diagnosis_add(struct doctor *doctor, enum doctor_verdict verdict, const char *check,
                   const char *format, ...) {
    TOOL_APPEND(doctor->list, doctor->count,
                (struct diagnosis){verdict, check, TOOL_VARIADIC(term_format, format), NULL});
}

void diagnosis_remedy(struct doctor *doctor, const char *format, ...) {
    doctor->list[doctor->count - 1].remedy = TOOL_VARIADIC(term_format, format);
}
