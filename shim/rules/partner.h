/*
 * partner.h - who should have exported what an import has waited for in vain.
 */
#pragma once

#include "config/config.h"
#include "util/text.h"

/* Adds "; camera (pid 77) runs here, ..." for the first process for which a rule of this
 * configuration exports the name of the import's rule. Nothing, if none is seen in /proc. */
void gps_partner_tell(const struct gps_config *config, const struct gps_rule *import,
                      struct gps_text *text);
