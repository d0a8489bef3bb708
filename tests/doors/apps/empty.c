/* empty.c - a preloaded library with nothing in it, to compare with. */
extern int nothing_in_here;
int nothing_in_here;
