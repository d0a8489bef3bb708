/*
 * The screen has a head of two lines, a body of processes and regions, which scrolls, the latest
 * findings, and the keys. Each line is made as text, cut to the terminal's width with a mark, and
 * then drawn by ncurses. A sheet, of help or of a row's details, takes the place of body and
 * findings until a key ends it.
 */
#include "screen.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <time.h>

#include "cli/printable.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "usage_text.h"
#include "util/clock.h"

#define INTERVAL_MIN (GPS_SECOND / 10)
#define INTERVAL_MAX (3600 * GPS_SECOND)
#define HEAD_LINES   3
#define ESCAPE       27

struct line {
    char *text; /* not cut yet */
    enum term_colour colour;
    bool title;
    char *target; /* of usage_text.h; NULL: the line has no details */
};

struct lines {
    struct line *lines;
    size_t count;
};

enum sheet { SHEET_NONE, SHEET_HELP, SHEET_DETAILS };

#define FILTER_MOST 40

struct screen {
    struct usage *usage;
    struct usage_order order;
    uint64_t interval, next; /* CLOCK_MONOTONIC */
    int scroll;              /* lines of the body that are above */
    int page;                /* lines of the body that there is room for */
    char *trouble;           /* the first line that the last reading wrote to stderr */
    struct lines body, findings;
    char *selected; /* the target of a line; NULL: none */
    enum sheet sheet;
    bool typing; /* the filter */
    char filter[FILTER_MOST + 1];
    size_t rows, shown; /* those that the filter saw, and let through */
    bool stale;         /* the body is of another sheet, or of an earlier reading */
    bool leaving;
};

/* --- reading --- */

/* Messages on stderr would spoil the screen, so they are caught, and the first is shown in it. */
static void read_anew(struct screen *screen) {
    FILE *const real = stderr;
    size_t size;
    free(screen->trouble);
    screen->trouble = NULL;
    FILE *memory = open_memstream(&screen->trouble, &size);
    if (memory)
        stderr = memory;
    usage_read(screen->usage);
    stderr = real;
    if (memory)
        fclose(memory);
    if (screen->trouble)
        screen->trouble[strcspn(screen->trouble, "\n")] = 0;
    screen->next = gps_clock_monotonic() + screen->interval;
    screen->stale = true;
}

/* --- lines --- */

static bool is_utf8(void) {
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* Stands for what was cut: an ellipsis, or a tilde where the terminal's characters lack it. */
static const char *screen_cut_mark(void) {
    return is_utf8() ? "\u2026" : "~";
}

/* A copy of the text, made harmless, and cut to the width of the screen. */
static char *screen_cut_text(const char *text) {
    char *line = term_clean(text);
    for (char *c = line; *c != 0 && !is_utf8(); c++)
        *c = (unsigned char)*c >= 0x80 ? '?' : *c;
    if (line[wrap_fit(line, (size_t)COLS)] != 0) {
        TOOL_TEMP char *whole = line;
        line =
            tool_format("%.*s%s", (int)wrap_fit(whole, (size_t)COLS - 1), whole, screen_cut_mark());
    }
    return line;
}

static void screen_add_line(struct lines *lines, const char *text, enum term_colour colour) {
    TOOL_APPEND(lines->lines, lines->count,
                (struct line){.text = tool_copy(text), .colour = colour});
}

/* Adds a text in lines that fit, broken between words. */
static void add_wrapped(struct lines *lines, const char *text) {
    for (int bytes; (bytes = (int)wrap_fit(text, (size_t)COLS)) > 0;) {
        int end = bytes;
        while (text[bytes] && end > 0 && text[end] != ' ')
            end--;
        end = end > 0 ? end : bytes;
        TOOL_TEMP char *line = tool_format("%.*s", end, text);
        screen_add_line(lines, line, TERM_YELLOW);
        text += end + (text[end] == ' ');
    }
}

/* Adds a line of titles, and the rows, each in the colour that one of its cells has. */
static void add_table(void *arg, struct table *table) {
    struct lines *lines = arg;
    const size_t columns = table->column_count, first = lines->count;
    const bool targets = strcmp(table->columns[1].title, USAGE_TARGET) == 0;
    TOOL_APPEND(lines->lines, lines->count, (struct line){.title = true});
    for (size_t at = 0; at < table->cell_count; at += columns) {
        const struct table_cell *cells = &table->cells[at];
        struct line line = {.colour = TERM_PLAIN};
        for (size_t i = 0; i < columns; i++)
            line.colour = cells[i].colour == TERM_PLAIN ? line.colour : cells[i].colour;
        if (targets && cells[1].text[0] != 0)
            line.target = tool_copy(cells[1].text);
        TOOL_APPEND(lines->lines, lines->count, line);
    }
    TOOL_TEMP char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        tool_no_memory();
    table_print(memory, table, "");
    fclose(memory);
    char *rest = text;
    for (size_t i = first; i < lines->count; i++)
        lines->lines[i].text = tool_copy(strsep(&rest, "\n"));
}

static void free_line(struct line *line) {
    free(line->text);
    free(line->target);
}

static void free_lines(struct lines *lines) {
    for (size_t i = 0; i < lines->count; i++)
        free_line(&lines->lines[i]);
    free(lines->lines);
    *lines = (struct lines){.count = 0};
}

static struct usage_layout layout_for(struct lines *lines) {
    return (struct usage_layout){
        .narrow = COLS < USAGE_WIDE, .mark = screen_cut_mark(), .print = add_table, .arg = lines};
}

static void write_body(struct screen *screen) {
    struct lines *lines = &screen->body;
    const struct usage *usage = screen->usage;
    const struct usage_layout layout = layout_for(lines);
    free_lines(lines);
    if (usage->view.store.path[0] == 0) { /* nothing could be read */
        add_wrapped(lines, tool_or(screen->trouble, ""));
        return;
    }
    if (usage->accounting.gpu_count > 1) {
        usage_text_gpus(usage, &layout);
        screen_add_line(lines, "", TERM_PLAIN);
    }
    usage_text_processes(usage, &layout);
    screen_add_line(lines, usage->process_count > 0 ? "" : "No process shares memory.", TERM_PLAIN);
    usage_text_regions(usage, &layout);
    if (usage->frames_count > 0)
        screen_add_line(lines, "", TERM_PLAIN);
    usage_text_frames(usage, &layout);
}

/* Leaves out the rows that do not have the filter's text in them. */
static void filter_body(struct screen *screen) {
    struct lines *lines = &screen->body;
    size_t kept = 0;
    screen->rows = screen->shown = 0;
    TOOL_EACH(struct line, line, lines->lines, lines->count) {
        const bool row = line->target, fits = strcasestr(line->text, screen->filter);
        screen->rows += row;
        screen->shown += row && fits;
        if (!row || fits)
            lines->lines[kept++] = *line;
        else
            free_line(line);
    }
    lines->count = kept;
}

static const char help[] =
    "Processes: OWN is what a process alone has, SHARED what others have, too,\n"
    "PROPORTIONAL its own and its part of what is shared, SAVED what it would take\n"
    "more without sharing. DRIVER is what nvidia-smi says, FAIR that with shared\n"
    "memory split among its holders.\n"
    "\n"
    "  up, down       choose a row         enter   tell what `gpushare show` says\n"
    "  page up, down  scroll               /       show only rows with a text in them\n"
    "  home, end      to begin and end     esc     end that, or a page like this\n"
    "  p o s v n i    sort by proportional, own, shared, saved, name or pid\n"
    "  d              sort by the driver's bytes, where those are known\n"
    "  r              turn the order round\n"
    "  + -            look less often, more often\n"
    "  space          look at once\n"
    "  q              quit\n";

/* What `gpushare show` says of it; malloc'ed. A process of its own: it reads the directory anew,
 * and its messages belong to what is shown. The target has digits, letters and @ only. */
static char *details_text(const char *target) {
    TOOL_TEMP char *line = tool_format("exec /proc/%d/exe show %s 2>&1", getpid(), target);
    FILE *said = popen(line, "re");
    size_t size;
    char *text = said ? tool_read(fileno(said), &size) : tool_copy("gpushare show cannot be run");
    if (said)
        pclose(said);
    return text;
}

/* Writes a sheet in place of the body. */
static void write_sheet(struct screen *screen) {
    TOOL_TEMP char *text =
        screen->sheet == SHEET_HELP ? tool_copy(help) : details_text(screen->selected);
    char *rest = text;
    free_lines(&screen->body);
    for (const char *line; (line = strsep(&rest, "\n")) && (rest || line[0] != 0);)
        screen_add_line(&screen->body, line, TERM_PLAIN);
}

/* Writes a line, and some findings: on a high screen more. */
static void write_findings(struct lines *lines, const struct usage *usage) {
    const struct usage_layout layout = layout_for(lines);
    TOOL_TEMP char *levels = usage_text_levels(usage);
    free_lines(lines);
    screen_add_line(lines, levels, TERM_BOLD);
    usage_text_findings(usage, &layout, LINES > 12 ? (size_t)(LINES - 8) / 4 : 0);
}

/* --- drawing --- */

static const short pairs[] = {
    [TERM_GREEN] = COLOR_GREEN, [TERM_YELLOW] = COLOR_YELLOW, [TERM_RED] = COLOR_RED};

static int screen_attribute(enum term_colour colour) {
    if (colour == TERM_BOLD)
        return (int)A_BOLD;
    if (colour == TERM_DIM)
        return (int)A_DIM;
    return colour == TERM_PLAIN || !has_colors() ? (int)A_NORMAL : COLOR_PAIR(colour);
}

static void draw(int row, const struct line *line, bool selected) {
    TOOL_TEMP char *text = screen_cut_text(line->text);
    attrset(line->title ? (int)A_REVERSE : screen_attribute(line->colour));
    if (selected)
        attron(A_BOLD | A_UNDERLINE);
    if (line->title)
        mvhline(row, 0, ' ', COLS);
    mvaddstr(row, 0, text);
    attrset(A_NORMAL);
}

static void draw_text(int row, enum term_colour colour, char *text) {
    move(row, 0);
    clrtoeol();
    draw(row, &(struct line){.text = text, .colour = colour}, false);
    free(text);
}

static void draw_head(const struct screen *screen) {
    char now[16] = "";
    const time_t seconds = time(NULL);
    struct tm local;
    if (localtime_r(&seconds, &local))
        strftime(now, sizeof(now), "%T", &local);
    draw_text(0, TERM_BOLD,
              tool_format("gpushare top   %s, every %s   %s", now,
                          printable_duration(screen->interval).text,
                          screen->usage->view.store.path));
    draw_text(1, TERM_PLAIN, usage_text_totals(screen->usage));
    if (screen->typing || screen->filter[0] != 0)
        draw_text(2, TERM_YELLOW,
                  tool_format("Filter: %s%s  %zu of %zu rows (%sesc ends it)", screen->filter,
                              screen->typing ? "_" : "", screen->shown, screen->rows,
                              screen->typing ? "enter keeps it, " : ""));
    else if (screen->usage->view.store.path[0] != 0 && screen->trouble && screen->trouble[0] != 0)
        draw_text(2, TERM_YELLOW, tool_copy(screen->trouble));
}

static bool is_selected(const struct screen *screen, const struct line *line) {
    return screen->selected && line->target && strcmp(screen->selected, line->target) == 0;
}

/* Lines that do not fit are counted, above and below. */
static void draw_body(struct screen *screen, int first, int room) {
    const int count = (int)screen->body.count;
    const int most = count > room ? count - room : 0;
    screen->page = room > 2 ? room - 2 : 1;
    if (screen->scroll > most)
        screen->scroll = most;
    if (screen->scroll < 0)
        screen->scroll = 0;
    for (int i = 0; i < room && screen->scroll + i < count; i++) {
        const struct line *line = &screen->body.lines[screen->scroll + i];
        draw(first + i, line, is_selected(screen, line));
    }
    if (screen->scroll > 0 && room > 1)
        draw_text(first, TERM_DIM,
                  tool_format("%s %d lines above", screen_cut_mark(), screen->scroll + 1));
    if (screen->scroll < most && room > 0)
        draw_text(first + room - 1, TERM_DIM,
                  tool_format("%s %d lines below (arrow keys)", screen_cut_mark(),
                              count - screen->scroll - room + 1));
}

static bool piece(int *column, const char *text, int attributes) {
    const int length = (int)strlen(text);
    if (*column + length >= COLS)
        return false;
    attrset(attributes);
    mvaddstr(LINES - 1, *column, text);
    attrset(A_NORMAL);
    *column += length;
    return true;
}

/* The keys that sort, by enum usage_key. */
static const char sort_keys[USAGE_KEYS + 1] = "posvdni";

/* Where there is no room for the words only the letters are drawn. */
static void draw_keys(const struct screen *screen) {
    const bool driver = screen->usage->driver, words = COLS >= (driver ? 90 : 80);
    int column = 0;
    if (screen->sheet) {
        if (piece(&column, "esc", (int)A_BOLD))
            piece(&column, " back", A_NORMAL);
        return;
    }
    bool good = piece(&column, "?", (int)A_BOLD) && piece(&column, " help  ", A_NORMAL) &&
                piece(&column, "q", (int)A_BOLD) && piece(&column, " quit  sort:", A_NORMAL);
    for (enum usage_key key = 0; good && key < USAGE_KEYS; key++) {
        const bool current = key == screen->order.key;
        const char letter[] = {sort_keys[key], 0};
        if (key == USAGE_DRIVER && !driver)
            continue;
        good = piece(&column, " ", A_NORMAL) && piece(&column, letter, (int)A_BOLD);
        if (good && words) {
            piece(&column, " ", A_NORMAL);
            piece(&column, usage_keys[key], current ? (int)A_REVERSE : (int)A_NORMAL);
        } else if (good && current) {
            piece(&column, "*", A_NORMAL);
        }
    }
    if (good && column + (int)strlen(" r turn") < COLS)
        good = piece(&column, " r", (int)A_BOLD) &&
               piece(&column, screen->order.reverse ? " back" : " turn", A_NORMAL);
    if (good && piece(&column, "  + -", (int)A_BOLD))
        piece(&column, " slower, faster", A_NORMAL);
}

static void draw_all(struct screen *screen) {
    const int findings = LINES > 8 && !screen->sheet ? (int)screen->findings.count : 0;
    const int room = LINES - HEAD_LINES - 1 - findings - (findings > 0);
    erase();
    draw_head(screen);
    if (room > 0)
        draw_body(screen, HEAD_LINES, room);
    for (int i = 0; i < findings; i++)
        draw(LINES - 1 - findings + i, &screen->findings.lines[i], false);
    if (LINES > 2)
        draw_keys(screen);
    refresh();
}

/* --- keys --- */

static void set_interval(struct screen *screen, uint64_t interval) {
    if (interval < INTERVAL_MIN)
        interval = INTERVAL_MIN;
    screen->interval = interval > INTERVAL_MAX ? INTERVAL_MAX : interval;
    screen->next = gps_clock_monotonic() + screen->interval;
}

static void show_sheet(struct screen *screen, enum sheet sheet) {
    screen->sheet = sheet;
    screen->scroll = 0;
    screen->stale = true;
}

/* The line that is selected; -1: none, or it is there no more. */
static int selected_line(const struct screen *screen) {
    int at = (int)screen->body.count - 1;
    while (at >= 0 && !is_selected(screen, &screen->body.lines[at]))
        at--;
    return at;
}

/* Selects the next row in a direction, at first a visible one, and scrolls to it. Where there is
 * none, it scrolls. */
static void move_selection(struct screen *screen, int step) {
    const int count = (int)screen->body.count, was = selected_line(screen);
    int at = was >= 0 ? was + step : screen->scroll;
    while (at >= 0 && at < count && !screen->body.lines[at].target)
        at += was >= 0 ? step : 1;
    if (at < 0 || at >= count) {
        screen->scroll += step;
        return;
    }
    free(screen->selected);
    screen->selected = tool_copy(screen->body.lines[at].target);
    const int room = screen->page; /* what is above and below may take a line each */
    if (at <= screen->scroll)
        screen->scroll = at - 1;
    if (at > screen->scroll + room)
        screen->scroll = at - room;
}

static void scroll_by(struct screen *screen, int key) {
    screen->scroll = key == KEY_DOWN    ? screen->scroll + 1
                     : key == KEY_UP    ? screen->scroll - 1
                     : key == KEY_NPAGE ? screen->scroll + screen->page
                     : key == KEY_PPAGE ? screen->scroll - screen->page
                     : key == KEY_HOME  ? 0
                     : key == KEY_END   ? (int)screen->body.count
                                        : screen->scroll;
}

static bool is_enter(int key) {
    return key == '\n' || key == '\r' || key == KEY_ENTER;
}

static void end_filter(struct screen *screen) {
    screen->filter[0] = 0;
    screen->typing = false;
}

static void type(struct screen *screen, int key) {
    const size_t length = strlen(screen->filter);
    if (is_enter(key))
        screen->typing = false;
    else if (key == ESCAPE)
        end_filter(screen);
    else if ((key == KEY_BACKSPACE || key == 0x7f || key == '\b') && length > 0)
        screen->filter[length - 1] = 0;
    else if (key >= ' ' && key < 0x7f && length < FILTER_MOST)
        memcpy(screen->filter + length, (const char[]){(char)key, 0}, 2);
}

static void act(struct screen *screen, int key) {
    if (screen->typing) {
        type(screen, key);
        return;
    }
    if (screen->sheet) {
        if (key == ESCAPE || key == 'q' || key == '?' || is_enter(key))
            show_sheet(screen, SHEET_NONE);
        else
            scroll_by(screen, key);
        return;
    }
    const char *sort = key > 0 && key < 0x80 ? strchr(sort_keys, key) : NULL;
    if (sort)
        screen->order.key = (enum usage_key)(sort - sort_keys);
    switch (key) {
    case 'q':
    case 'Q':
        screen->leaving = true;
        break;
    case 'r':
        screen->order.reverse = !screen->order.reverse;
        break;
    case ' ':
        read_anew(screen);
        break;
    case '+':
        set_interval(screen, screen->interval * 2);
        break;
    case '-':
        set_interval(screen, screen->interval / 2);
        break;
    case '?':
        show_sheet(screen, SHEET_HELP);
        break;
    case '/':
        screen->typing = true;
        break;
    case ESCAPE:
        end_filter(screen);
        break;
    case KEY_DOWN:
    case KEY_UP:
        move_selection(screen, key == KEY_DOWN ? 1 : -1);
        break;
    case '\n':
    case '\r':
    case KEY_ENTER:
        if (selected_line(screen) < 0)
            move_selection(screen, 1);
        if (selected_line(screen) >= 0)
            show_sheet(screen, SHEET_DETAILS);
        break;
    default:
        scroll_by(screen, key);
    }
}

/* Waits for a key or the next reading. A terminal that is gone ends the screen. */
static void wait_for_key(struct screen *screen) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    const uint64_t now = gps_clock_monotonic();
    const uint64_t left = now < screen->next ? screen->next - now : 0;
    const int ready = poll(&input, 1, (int)(left / 1000000) + 1);
    int key = getch(), last = key;
    for (; key != ERR; key = getch())
        act(screen, last = key);
    if (ready > 0 && last == ERR)
        screen->leaving = true;
}

/* --- the terminal --- */

static void screen_leave(void) {
    if (!isendwin())
        endwin();
}

static bool screen_enter(void) {
    const char *kind = getenv("TERM");
    setlocale(LC_CTYPE, "");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return tool_error("needs a terminal for input and output; without one use --once");
    if (!kind || kind[0] == 0 || strcmp(kind, "dumb") == 0)
        return tool_error("TERM is %s, a terminal without a screen; set it, or use --once",
                          kind && kind[0] != 0 ? kind : "not set");
    if (!newterm(NULL, stdout, stdin))
        return tool_error(
            "the terminal '%s' (TERM) is not described in this system's terminfo; install "
            "that (ncurses-base, ncurses-term), set TERM or TERMINFO, or use --once",
            kind);
    atexit(screen_leave);
    set_escdelay(25);
    cbreak();
    noecho();
    nodelay(stdscr, true);
    keypad(stdscr, true);
    curs_set(0);
    return true;
}

static void start_colours(void) {
    if (term_colour(TERM_BOLD)[0] == 0 || start_color() == ERR)
        return;
    const short background = use_default_colors() == OK ? -1 : COLOR_BLACK;
    for (short i = TERM_GREEN; i <= TERM_RED; i++)
        init_pair(i, pairs[i], background);
}

/* Details are asked for anew with each reading only: it takes another process. */
static void screen_write_all(struct screen *screen) {
    if (!screen->sheet) {
        usage_sort(screen->usage, screen->order);
        write_body(screen);
        filter_body(screen);
        write_findings(&screen->findings, screen->usage);
    } else if (screen->stale) {
        write_sheet(screen);
    }
    screen->stale = false;
}

int screen_run(struct usage *usage, struct usage_order order, uint64_t interval) {
    struct screen screen = {.usage = usage, .order = order, .interval = interval};
    if (!screen_enter())
        return TOOL_FAILED;
    start_colours();
    while (!screen.leaving) {
        if (gps_clock_monotonic() >= screen.next)
            read_anew(&screen);
        screen_write_all(&screen);
        draw_all(&screen);
        wait_for_key(&screen);
    }
    screen_leave();
    free_lines(&screen.body);
    free_lines(&screen.findings);
    free(screen.trouble);
    free(screen.selected);
    return TOOL_OK;
}
