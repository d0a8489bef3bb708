# resolved.awk - the rows of resolved.inc, from cudaTypedefs.h, hooks.def and then the names of hooked functions.
#
# The header has each function once for each of its ABIs, by the version of CUDA that brought it:
# PFN_cuMemAlloc_v2000 is cuMemAlloc, PFN_cuMemAlloc_v3020 is cuMemAlloc_v2. The variants for each
# thread's streams count for themselves, and began with an ABI that was there already.

function note(name, version, variant) {
    if (!((name, version, variant) in seen))
        sort_in(name variant, version)
    seen[name, version, variant] = 1
}

function sort_in(key, version,    i) {
    for (i = ++count[key]; i > 1 && versions[key, i - 1] > version; i--)
        versions[key, i] = versions[key, i - 1]
    versions[key, i] = version
}

/PFN_cu[A-Za-z0-9]+_v[0-9]+(_pt[ds][sz])?\)/ && /typedef/ {
    match($0, /PFN_cu[A-Za-z0-9]+_v[0-9]+(_pt[ds][sz])?/)
    split(substr($0, RSTART + 4, RLENGTH - 4), part, "_")
    note(part[1], substr(part[2], 2) + 0, part[3])
    next
}

/^NEWER\(/ {
    split($0, part, /[(), ]+/)
    note(part[2], part[3] + 0, "")
    note(part[2], part[3] + 0, "ptsz")
    next
}

/^cu[A-Z]/ {
    name = $0
    variant = match(name, /_pt[ds][sz]$/) ? substr(name, RSTART + 1) : ""
    sub(/_pt[ds][sz]$/, "", name)
    abi = match(name, /_v[0-9]+$/) ? substr(name, RSTART + 2) + 0 : 1
    sub(/_v[0-9]+$/, "", name)
    key = name variant
    if (abi > count[key])
        abi = count[key]
    if (abi)
        printf "RESOLVED(%s, \"%s\", %d, %d)\n", $0, name, versions[key, abi], variant ? 2 : 1
}
