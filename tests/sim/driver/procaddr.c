/* cuGetProcAddress, over the rows of api.def. What it says of odd names was seen on the H200. */
#include "abi.h"

#define NONE NULL

typedef void function(void);

static const struct row {
    const char *name;
    int version;
    function *symbol, *per_thread; /* per_thread may be NULL */
} rows[] = {
#define API(name, version, symbol, per_thread)                                                     \
    {#name, version, (function *)symbol, (function *)per_thread},
#include "api.def"
#undef API
};

/* The per-thread twins came with 7.0, whatever the age of the call. */
static int twin_version(const struct row *row) {
    return row->version < 7000 ? 7000 : row->version;
}

static bool has_twin(const char *name) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].per_thread && !strcmp(rows[i].name, name))
            return true;
    return false;
}

static function *find(const char *name, int version, cuuint64_t flags,
                      CUdriverProcAddressQueryResult *status) {
    function *found = NULL;
    /* Where there is a twin, a per-thread search looks at nothing else. */
    bool twin = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM && has_twin(name);
    *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        if (strcmp(row->name, name) || (twin && !row->per_thread))
            continue;
        if (!found)
            *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if ((twin ? twin_version(row) : row->version) <= version) {
            found = twin ? row->per_thread : row->symbol;
            *status = CU_GET_PROC_ADDRESS_SUCCESS;
        }
    }
    return found;
}

/* cuSimMany0, cuSimMany1 ...: as many functions as one likes, to be looked up and not to be called.
 */
static function *find_one_of_many(const char *name) {
    static const char many[1024];
    const char *const prefix = "cuSimMany";
    return strncmp(name, prefix, strlen(prefix))
               ? NULL
               : (function *)(uintptr_t)&many[atoi(name + strlen(prefix)) % (int)sizeof many];
}

CUresult CUDAAPI cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult *status) {
    CUdriverProcAddressQueryResult unused;
    const int newest = getenv("GPUSHARE_SIM_NEWER") ? 99000 : CUDA_VERSION;
    REFUSE(!name || !out || version > newest || flags > 3, CUDA_ERROR_INVALID_VALUE);
    *out = (void *)(uintptr_t)find(name, version, flags, status ? status : &unused);
    if (!*out && newest > CUDA_VERSION)
        *out = (void *)(uintptr_t)find_one_of_many(name);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags) {
    CUdriverProcAddressQueryResult status;
    void *found;
    TRY(cuGetProcAddress_v2(name, &found, version, flags, &status));
    REFUSE(!out, CUDA_ERROR_INVALID_VALUE);
    REFUSE(!found, CUDA_ERROR_NOT_FOUND);
    *out = found;
    return CUDA_SUCCESS;
}
