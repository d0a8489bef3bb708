/*
 * Each module has a Dwfl of its own: addresses are those in the file, and so those of two modules
 * overlap. The line table says where an address is, the innermost inlined call where that was
 * called from, and so on outwards. Without debug information there is the symbol table, or nothing.
 */
#include "symbol.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <libiberty/demangle.h>
#include <sys/stat.h>

#include "cli/string_map.h"
#include "cli/tool.h"
#include "util/digits.h"

#define DEBUG_ROOT     "/usr/lib/debug" /* of debug files, by build id */
#define BUILD_ID_BYTES 64
#define MODULE_CHARS   127 /* a log has the end of a path that is longer */
#define DEMANGLE       (DMGL_AUTO | DMGL_ANSI)

/* --- units of debug information --- */

/* A unit is what was compiled at once: a source file, mostly. Compilers may list the addresses of
 * units in .debug_aranges. clang does not, so each unit is asked for its own, once. */
struct units {
    Dwarf *debug;
    struct unit_range *ranges; /* ascending */
    size_t count;
};

struct unit_range {
    Dwarf_Addr low, high; /* high is behind the last address */
    Dwarf_Off unit;
};

static int unit_range_compare(const void *left, const void *right) {
    const struct unit_range *a = left, *b = right;
    return tool_compare(a->low, b->low);
}

/* `debug` NULL: there are no units. It must outlive the table. */
static void units_read(struct units *units, Dwarf *debug) {
    Dwarf_Die unit;
    Dwarf_Addr base;
    *units = (struct units){.debug = debug};
    for (Dwarf_CU *next = NULL;
         debug && dwarf_get_units(debug, next, &next, NULL, NULL, &unit, NULL) == 0;) {
        struct unit_range range = {.unit = dwarf_dieoffset(&unit)};
        for (ptrdiff_t at = 0; (at = dwarf_ranges(&unit, at, &base, &range.low, &range.high)) > 0;)
            TOOL_APPEND(units->ranges, units->count, range);
    }
    TOOL_SORT(units->ranges, units->count, unit_range_compare);
}

/* Ranges overlap where the linker has left code out: its ranges begin at 0. So of those
 * around the address the last one counts. False: no unit has code there. */
static bool units_find(const struct units *units, Dwarf_Addr address, Dwarf_Die *unit) {
    size_t low = 0, high = units->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (units->ranges[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && units->ranges[low - 1].high <= address)
        low--;
    return low > 0 && dwarf_offdie(units->debug, units->ranges[low - 1].unit, unit);
}

struct module {
    Dwfl *dwfl;
    Dwfl_Module *module;
    struct units units;
    Dwarf_Addr bias;  /* subtracted from an address before a look-up in them */
    const char *note; /* why there is no module to look into; or NULL */
};

struct functions { /* around an address */
    Dwarf_Die *dies;
    size_t count;
};

struct symbols {
    struct string_map *modules, *found;
    char *directory; /* of further debug files, or NULL */
    char *search;    /* directories, as dwfl_standard_find_debuginfo has them */
};

/* --- modules --- */

static void close_module(void *value) {
    struct module *module = value;
    free(module->units.ranges);
    if (module->dwfl)
        dwfl_end(module->dwfl);
    *module = (struct module){.dwfl = NULL};
}

static bool open_module(struct module *module, const char *path, struct symbols *symbols) {
    static Dwfl_Callbacks callbacks = {.find_debuginfo = dwfl_standard_find_debuginfo,
                                       .section_address = dwfl_offline_section_address};
    callbacks.debuginfo_path = &symbols->search;
    module->dwfl = dwfl_begin(&callbacks);
    if (!module->dwfl)
        return false;
    dwfl_report_begin(module->dwfl);
    module->module = dwfl_report_elf(module->dwfl, path, path, -1, 0, true);
    dwfl_report_end(module->dwfl, NULL, NULL);
    return module->module;
}

/* Whether the file is the one that ran. Without a build id in the log, it counts as that. */
static bool symbol_module_is_same(const struct module *module, const char *build_id) {
    if (!build_id)
        return true;
    const unsigned char *bits;
    GElf_Addr address;
    char hex[2 * BUILD_ID_BYTES + 1];
    int count = dwfl_module_build_id(module->module, &bits, &address);
    if (count <= 0 || count > BUILD_ID_BYTES)
        return false;
    gps_hex_format(bits, (size_t)count, hex);
    return strcmp(hex, build_id) == 0;
}

/* A log can name anything: so no FIFO is opened, and a relative path only with a build id, which
 * proves that the file is the one that ran. */
static bool try(struct module *module, const char *path, const char *build_id,
                struct symbols *symbols) {
    struct stat info;
    if ((path[0] != '/' && !build_id) || stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    if (!open_module(module, path, symbols) || !symbol_module_is_same(module, build_id)) {
        close_module(module);
        return false;
    }
    units_read(&module->units, dwfl_module_getdwarf(module->module, &module->bias));
    return true;
}

static bool try_debug_file(struct module *module, const char *root, const char *build_id,
                           struct symbols *symbols) {
    char path[4096];
    if (!root || !build_id || strlen(build_id) < 3)
        return false;
    int length =
        snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", root, build_id, build_id + 2);
    return length < (int)sizeof(path) && try(module, path, build_id, symbols);
}

static const char *why_not(const char *path) {
    if (path[0] != '/')
        return strlen(path) >= MODULE_CHARS ? "its path is too long for the log"
                                            : "not found from here";
    return access(path, F_OK) == 0 ? "replaced since" : "file is gone";
}

static const struct module *symbol_module_of(struct symbols *symbols,
                                             const struct log_frame *frame) {
    const char *path = frame->module, *build_id = frame->build_id;
    TOOL_TEMP char *key = tool_format("%s %s", tool_or(build_id, ""), path);
    struct module *module = string_map_make(&symbols->modules, key, sizeof(*module));
    if (!module->module && !module->note && !try(module, path, build_id, symbols) &&
        !try_debug_file(module, symbols->directory, build_id, symbols) &&
        !try_debug_file(module, DEBUG_ROOT, build_id, symbols))
        module->note = why_not(path);
    return module;
}

/* --- places: functions, files and lines --- */

static char *demangle(const char *name, int options) {
    char *demangled = cplus_demangle(name, options);
    return demangled ? demangled : tool_copy(name);
}

static void set_function(struct symbol_place *place, const char *name) {
    if (!name)
        return;
    place->plain = name;
    place->function = demangle(name, DEMANGLE | DMGL_PARAMS);
    place->bare = demangle(name, DEMANGLE);
}

static const char *linkage_name(Dwarf_Die *die) {
    Dwarf_Attribute attribute;
    if (!dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) &&
        !dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        return dwarf_diename(die);
    return dwarf_formstring(&attribute);
}

static bool is_function(Dwarf_Die *die) {
    int tag = dwarf_tag(die);
    return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram ||
           tag == DW_TAG_entry_point;
}

static struct symbol_place *symbol_add_place(struct symbol *symbol) {
    symbol->places = tool_resize(symbol->places, symbol->count + 1, sizeof(*symbol->places));
    symbol->places[symbol->count] = (struct symbol_place){.line = 0};
    return &symbol->places[symbol->count++];
}

static unsigned die_number_of(Dwarf_Die *die, unsigned attribute_name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_formudata(dwarf_attr(die, attribute_name, &attribute), &value) != 0)
        return 0;
    return (unsigned)value;
}

/* Sets the place at which the inlined call `die` was made. */
static void set_call_site(struct symbol_place *place, Dwarf_Die *unit, Dwarf_Die *die,
                          const char *directory) {
    Dwarf_Files *files;
    unsigned file = die_number_of(die, DW_AT_call_file);
    if (dwarf_getsrcfiles(unit, &files, NULL) == 0)
        place->file = dwarf_filesrc(files, file, NULL, NULL);
    place->line = die_number_of(die, DW_AT_call_line);
    place->directory = directory;
}

/* The innermost function is the last one. Inlined ones are places, and the one around them. */
static void add_functions(struct symbol *symbol, Dwarf_Die *unit,
                          const struct functions *functions) {
    const char *directory = symbol->places[0].directory;
    Dwarf_Die *call = NULL;
    for (size_t i = functions->count; i-- > 0;) {
        Dwarf_Die *die = &functions->dies[i];
        struct symbol_place *place = call ? symbol_add_place(symbol) : &symbol->places[0];
        if (call)
            set_call_site(place, unit, call, directory);
        set_function(place, linkage_name(die));
        if (dwarf_tag(die) != DW_TAG_inlined_subroutine)
            return;
        call = die;
    }
}

/* Whether the entry has no addresses of its own, but functions that have. */
static bool holds_functions(Dwarf_Die *die) {
    switch (dwarf_tag(die)) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_subprogram:
        return true;
    default:
        return false;
    }
}

/* Adds the functions below `parent` that have the address, the outermost first. It is no
 * dwarf_getscopes, which finds none where an inlined function is defined in another unit (gcc
 * -flto) or in a namespace (Rust). */
static void find_functions(Dwarf_Die *parent, Dwarf_Addr address, struct functions *functions) {
    Dwarf_Die die;
    bool found = false;
    for (int end = dwarf_child(parent, &die); end == 0 && !found;
         end = dwarf_siblingof(&die, &die)) {
        const size_t before = functions->count;
        const bool has = dwarf_haspc(&die, address) > 0;
        if (has && is_function(&die))
            TOOL_APPEND(functions->dies, functions->count, die);
        if (has || holds_functions(&die))
            find_functions(&die, address, functions);
        found = functions->count > before;
    }
}

/* The unit itself, or with -gsplit-dwarf the one of the file apart that has the functions. */
static Dwarf_Die with_functions(Dwarf_Die *unit) {
    Dwarf_Die split;
    const int status = dwarf_cu_info(unit->cu, NULL, NULL, NULL, &split, NULL, NULL, NULL);
    return status == 0 && split.addr ? split : *unit;
}

static void find_line(Dwarf_Die *unit, Dwarf_Addr address, struct symbol_place *place) {
    Dwarf_Line *line = dwarf_getsrc_die(unit, address);
    Dwarf_Attribute directory;
    int number = 0;
    place->file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    if (!place->file)
        return;
    place->directory = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &directory));
    if (dwarf_lineno(line, &number) == 0 && number > 0)
        place->line = (unsigned)number;
}

/* Debug information may have absolute names; they are shown as the compiler was given them. */
static void shorten(struct symbol_place *place) {
    size_t length = place->directory ? strlen(place->directory) : 0;
    if (place->file && length > 0 && strncmp(place->file, place->directory, length) == 0 &&
        place->file[length] == '/')
        place->file += length + 1;
}

/* Fills in the places at an address of the module. The symbol has one empty place. */
static void find_places(const struct module *module, uint64_t address, struct symbol *symbol) {
    const Dwarf_Addr inside = address - module->bias;
    Dwarf_Die unit;
    if (units_find(&module->units, inside, &unit)) {
        struct functions functions = {.count = 0};
        Dwarf_Die whole = with_functions(&unit);
        find_line(&unit, inside, &symbol->places[0]);
        find_functions(&whole, inside, &functions);
        add_functions(symbol, &whole, &functions);
        free(functions.dies);
    }
    if (!symbol->places[0].function)
        set_function(&symbol->places[0], dwfl_module_addrname(module->module, address));
    for (size_t i = 0; i < symbol->count; i++)
        shorten(&symbol->places[i]);
}

/* --- frames --- */

/* A Python frame has its symbol with it. A return address is behind its call, where the next line
 * or function may begin: so the address before it is looked up. */
static void symbol_look_up(struct symbols *symbols, const struct log_frame *frame,
                           struct symbol *symbol) {
    struct symbol_place *place = symbol_add_place(symbol);
    if (frame->function) {
        place->function = tool_copy(frame->function);
        place->bare = tool_copy(frame->function);
        place->file = frame->file;
        place->line = frame->line <= INT32_MAX ? (unsigned)frame->line : 0;
    } else if (frame->module) {
        const struct module *module = symbol_module_of(symbols, frame);
        symbol->note = module->note;
        if (module->module && frame->offset > 0)
            find_places(module, frame->offset - 1, symbol);
    }
}

const struct symbol *symbol_find(struct symbols *symbols, const struct log_frame *frame) {
    TOOL_TEMP char *key =
        frame->function ? tool_format("%s\n%" PRId64 " %s", frame->function, frame->line,
                                      tool_or(frame->file, ""))
                        : tool_format("%" PRIx64 " %s %s", frame->offset,
                                      tool_or(frame->build_id, ""), tool_or(frame->module, ""));
    struct symbol *symbol = string_map_make(&symbols->found, key, sizeof(*symbol));
    if (symbol->count == 0)
        symbol_look_up(symbols, frame, symbol);
    return symbol;
}

bool symbol_defines(struct symbols *symbols, const struct log_frame *frame, const char *name) {
    const struct module *module = frame->module ? symbol_module_of(symbols, frame) : NULL;
    const int count = module && module->module ? dwfl_module_getsymtab(module->module) : 0;
    for (int i = 0; i < count; i++) {
        GElf_Sym symbol;
        GElf_Word section;
        const char *found = dwfl_module_getsym(module->module, i, &symbol, &section);
        if (found && section != SHN_UNDEF && strcmp(found, name) == 0)
            return true;
    }
    return false;
}

char *symbol_path(const struct symbol_place *place) {
    if (!place->file)
        return NULL;
    if (place->file[0] == '/' || !place->directory)
        return tool_copy(place->file);
    return tool_format("%s/%s", place->directory, place->file);
}

/* --- all of them --- */

struct symbols *symbol_open(const char *directory) {
    static const char usual[] = ":.debug:/usr/lib/debug";
    struct symbols *symbols = tool_resize(NULL, 1, sizeof(*symbols));
    *symbols = (struct symbols){.directory = tool_copy(directory)};
    symbols->search = tool_format("%s%s%s", tool_or(directory, ""), directory ? ":" : "", usual);
    return symbols;
}

static void clear_symbol(void *value) {
    struct symbol *symbol = value;
    for (size_t i = 0; i < symbol->count; i++) {
        free(symbol->places[i].function);
        free(symbol->places[i].bare);
    }
    free(symbol->places);
}

void symbol_close(struct symbols *symbols) {
    string_map_free(&symbols->found, clear_symbol);
    string_map_free(&symbols->modules, close_module);
    free(symbols->directory);
    free(symbols->search);
    free(symbols);
}
