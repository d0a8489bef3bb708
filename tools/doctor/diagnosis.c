/* diagnosis.c - adds diagnoses to those of `gpushare doctor`. */
#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli/tool.h"
#include "util/text.h"

#define TEXT_MAX 8192

static char *vformat(const char *format, va_list args) {
    char text[TEXT_MAX], clean[TEXT_MAX];
    struct gps_text out = GPS_TEXT(clean);
    vsnprintf(text, sizeof(text), format, args);
    gps_text_plain(&out, text);
    return tool_copy(clean);
}

void diagnosis_add(struct doctor *doctor, enum doctor_verdict verdict, const char *check,
                   const char *format, ...) {
    va_list args;
    va_start(args, format);
    doctor->list = tool_grow(doctor->list, doctor->count, sizeof(*doctor->list));
    doctor->list[doctor->count++] = (struct diagnosis){verdict, check, vformat(format, args), NULL};
    va_end(args);
}

void diagnosis_remedy(struct doctor *doctor, const char *format, ...) {
    va_list args;
    va_start(args, format);
    doctor->list[doctor->count - 1].remedy = vformat(format, args);
    va_end(args);
}
