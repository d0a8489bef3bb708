#include "apart_help.h"

void apart_print_help(FILE *out, const char *margin) {
    fprintf(out,
            "%1$sThen this may help:\n"
            "%1$s  transformers  HF_DEACTIVATE_ASYNC_LOAD=1\n"
            "%1$s  PyTorch       PYTORCH_ALLOC_CONF=roundup_power2_divisions:8\n",
            margin);
}
