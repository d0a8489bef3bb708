# hooked.awk - the functions that the rows of hooks.def or hip_hooks.def hook, in the order of the file.

BEGIN {
    FS = "[(,)] *"
    for (i = split("DRIVER USE HIP", macros, " "); i > 0; i--)
        place[macros[i]] = 3 # behind its kind
    for (i = split("LOOKUP RUNTIME RUNTIME_FREE RUNTIME_IPC WRITE WRITE_SYNC WRITE_ASYNC GATED LAUNCH GRAPH READ EXIT", macros, " "); i > 0; i--)
        place[macros[i]] = 2
}

/^[A-Z_]+\(/ && $1 in place {
    if ($1 == "WRITE_SYNC")
        print $2 "_ptds"
    if ($1 == "WRITE_ASYNC")
        print $2 "_ptsz"
    print $place[$1]
}
