/*
 * config.c - finds and reads gpushare.conf and the environment, and lists the options.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "configfile.h"
#include "option.h"
#include "session.h"
#include "util/text.h"

void gps_config_free(struct gps_config *config) {
    free(config->rules);
    gps_session_reset(config);
}

/* False: there is no such file. Any other problem is reported. */
static bool read_path(struct gps_session *session, const char *path) {
    struct gps_configfile file;
    char message[GPS_CONFIGFILE_MESSAGE];
    int status = gps_configfile_read(path, &file, message);
    if (status == -ENOENT)
        return false;
    struct gps_text source = gps_text_on(session->config->source, GPS_CONFIG_PATH);
    gps_text_str(&source, path);
    session->file = path;
    if (status != 0) {
        gps_session_fail(session, 0, message);
        return true;
    }
    gps_session_read(session, path, file.bytes, file.count);
    gps_configfile_drop(&file);
    return true;
}

static void read_required(struct gps_session *session, const char *path) {
    if (read_path(session, path))
        return;
    session->file = path;
    gps_session_fail(session, 0, "cannot be read: there is no such file");
}

static const char *variable(const char *name) {
    /* Not getenv: a set-uid program must not let its caller choose where it writes its log. */
    const char *value = secure_getenv(name);
    return value && *value != '\0' ? value : NULL;
}

/* The user's own file; false when there is none. */
static bool read_home(struct gps_session *session) {
    const char *base = variable("XDG_CONFIG_HOME");
    const char *rest = "/gpushare/gpushare.conf";
    char path[GPS_CONFIG_PATH];
    struct gps_text text = GPS_TEXT(path);
    if (!base || *base != '/') { /* relative ones are to be ignored, says the XDG standard */
        base = variable("HOME");
        rest = "/.config/gpushare/gpushare.conf";
    }
    gps_text_strs(&text, base, rest);
    return base && *base == '/' && !text.cut && read_path(session, path);
}

static void read_variable(struct gps_session *session, const struct gps_key *key) {
    char name[64];
    struct gps_text text = GPS_TEXT(name);
    gps_key_variable(key, &text);
    const char *value = variable(name);
    if (!value)
        return;
    session->config->from_environment |= 1u << gps_key_place(key);
    const char *wrong = gps_key_set(key, &session->config->options, value);
    session->file = name;
    if (wrong)
        gps_session_fail_value(session, 0, key, value, wrong);
    session->file = "";
}

static void read_environment(struct gps_session *session) {
    struct gps_keys keys = gps_keys_of(GPS_SECTION_OPTIONS);
    for (size_t i = 0; i < keys.count; i++)
        read_variable(session, &keys.first[i]);
}

/* In mode = audit the default of log_level is info. */
static void default_level_of_audit(struct gps_config *config) {
    const size_t place = gps_key_place(gps_key_find(GPS_SECTION_OPTIONS, "log_level"));
    const bool chosen = (config->from_file | config->from_environment) >> place & 1;
    if (config->options.mode == GPS_MODE_AUDIT && !chosen)
        config->options.log_level = GPS_LEVEL_INFO;
}

int gps_config_load(struct gps_config *config, gps_config_error_fn *fn, void *arg) {
    struct gps_session session = gps_session_begin(config, fn, arg);
    const char *path = variable("GPUSHARE_CONFIG");
    if (path)
        read_required(&session, path);
    else if (!read_home(&session))
        (void)read_path(&session, "/etc/gpushare.conf");
    read_environment(&session);
    default_level_of_audit(config);
    return gps_session_end(&session);
}

int gps_config_read_file(struct gps_config *config, const char *path, gps_config_error_fn *fn,
                         void *arg) {
    struct gps_session session = gps_session_begin(config, fn, arg);
    read_required(&session, path);
    return gps_session_end(&session);
}

int gps_config_parse(struct gps_config *config, const char *file, const char *bytes, size_t count,
                     gps_config_error_fn *fn, void *arg) {
    struct gps_session session = gps_session_begin(config, fn, arg);
    if (count > GPS_CONFIGFILE_MAX) {
        session.file = file;
        gps_session_fail(&session, 0, "is larger than 1 MiB");
    } else {
        gps_session_read(&session, file, bytes, count);
    }
    return gps_session_end(&session);
}

void gps_config_each_option(const struct gps_config *config, gps_option_fn *fn, void *arg) {
    struct gps_keys keys = gps_keys_of(GPS_SECTION_OPTIONS);
    for (size_t i = 0; i < keys.count; i++) {
        const struct gps_key *key = &keys.first[i];
        char value[GPS_CONFIG_PATH];
        struct gps_text text = GPS_TEXT(value);
        const char *from = "default";
        if (config->from_environment >> i & 1)
            from = "environment";
        else if (config->from_file >> i & 1)
            from = "file";
        gps_key_show(key, &config->options, &text);
        fn(arg, key->name, value, from, key->allowed, key->sentence);
    }
}
