# resolved.awk - the rows of resolved.inc, from cudaTypedefs.h and then the names of hooked functions.
#
# The header has each function once for each of its ABIs, by the version of CUDA that brought it:
# PFN_cuMemAlloc_v2000 is cuMemAlloc, PFN_cuMemAlloc_v3020 is cuMemAlloc_v2. The variants for each
# thread's streams count for themselves, and began with an ABI that was there already.

function sort_in(key, version,    i) {
    for (i = ++count[key]; i > 1 && versions[key, i - 1] > version; i--)
        versions[key, i] = versions[key, i - 1]
    versions[key, i] = version
}

/PFN_cu[A-Za-z0-9]+_v[0-9]+(_pt[ds][sz])?\)/ && /typedef/ {
    match($0, /PFN_cu[A-Za-z0-9]+_v[0-9]+(_pt[ds][sz])?/)
    split(substr($0, RSTART + 4, RLENGTH - 4), part, "_")
    if (!((part[1], part[2], part[3]) in seen))
        sort_in(part[1] part[3], substr(part[2], 2) + 0)
    seen[part[1], part[2], part[3]] = 1
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
