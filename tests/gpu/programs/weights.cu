// An ordinary server: it loads weights from a file, says when it is ready, and answers questions
// from its input, a line each, until "end".
//
// usage: weights make FILE BYTES SEED [FROM TO SEED]...   the bytes from FROM to TO by another seed
//        weights serve FILE [OPTION]...
//        weights stress FILE SEED [OPTION]...   changes and checks its weights until its input ends
//        weights used                           bytes of the card that are in use
//
// layers=N (1)    so many allocations, or
// layout=hole     one, of many tensors, and a hole between them
// how=WHAT        read: through a buffer; attach: loads nothing; changed: by a kernel, in place;
//                 computed: by a kernel, from another buffer
// threads=N       that load, in random order
//
// sum: a checksum over all weights. copy, set, kernel: the code of a copy, a memset, a kernel that
// writes into the first ones. handle: the interprocess handle of the first allocation. requests N
// PAUSE: small ones, with so many microseconds between. launches N: of an empty kernel. busy MS
// NS...: one kernel after the other for so long, a stream and a thread for each length.
#include "weights.hpp"

#include <chrono>
#include <poll.h>
#include <sstream>
#include <thread>

enum { BATCH = 200, REQUEST_WORDS = 1 << 18, STEPS_A_LINE = 20 };

static double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

static int write_by_kernel(uint32_t *to) {
    uint32_t more = 1;
    const int code = kernels().run("test_add", to, 64, &more);
    return code ? code : cudaDeviceSynchronize();
}

static void print_handle(void *allocation) {
    cudaIpcMemHandle_t handle;
    const int code = cudaIpcGetMemHandle(&handle, allocation);
    printf("handle %d ", code);
    for (const char byte : handle.reserved)
        printf("%02x", code ? 0 : (unsigned char)byte);
    printf("\n");
}

// --- requests: a kernel reads some of the weights, and its answer is copied back ---

struct Client {
    cudaStream_t stream;
    uint32_t *sum, *answer; // on the card, pinned
    CUfunction kernel;

    Client() : kernel(kernels().named("test_read")) {
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        check(cudaMalloc((void **)&sum, sizeof(*sum)), "cudaMalloc");
        check(cudaMallocHost((void **)&answer, sizeof(*answer)), "cudaMallocHost");
    }
    ~Client() {
        cudaStreamDestroy(stream);
        cudaFree(sum);
        cudaFreeHost(answer);
    }

    uint32_t ask(const uint32_t *from, size_t words) {
        check(cudaMemsetAsync(sum, 0, sizeof(*sum), stream), "cudaMemsetAsync");
        check((cudaError_t)kernels().run(kernel, from, words, &sum, stream), "cuLaunchKernel");
        check(cudaMemcpyAsync(answer, sum, sizeof(*sum), cudaMemcpyDeviceToHost, stream),
              "cudaMemcpyAsync");
        check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        return *answer;
    }
};

static size_t request_words(const Piece &piece) {
    return std::min<size_t>(piece.bytes / 4, REQUEST_WORDS);
}

static std::vector<uint32_t> right_answers(const Weights &weights) {
    std::vector<uint32_t> all;
    for (const Piece &piece : weights.pieces) {
        uint32_t one = 0;
        for (size_t i = 0; i < request_words(piece); i++)
            one += weights.words(piece)[i];
        all.push_back(one);
    }
    return all;
}

static void requests(const Weights &weights, size_t count, unsigned pause) {
    const std::vector<uint32_t> right = right_answers(weights);
    std::vector<double> times;
    size_t bad = 0;
    Client client;
    for (size_t n = 0; n < count; n++) {
        const Piece &piece = weights.pieces[n % right.size()];
        const double start = seconds();
        bad += client.ask(piece.to, request_words(piece)) != right[n % right.size()];
        times.push_back((seconds() - start) * 1e6);
        usleep(pause);
    }
    std::sort(times.begin(), times.end());
    printf("requests %zu bad %zu median %.1f p999 %.1f worst %.1f us\n", count, bad,
           times[count / 2], times[count * 999 / 1000], times[count - 1]);
}

static void launches(size_t count) {
    std::vector<double> times;
    Client client;
    for (size_t done = 0; done < count; done += BATCH) {
        const double start = seconds();
        for (int i = 0; i < BATCH; i++)
            kernels().run(client.kernel, client.sum, 0, &client.sum, client.stream);
        times.push_back((seconds() - start) / BATCH * 1e9);
        check(cudaStreamSynchronize(client.stream), "cudaStreamSynchronize");
    }
    std::sort(times.begin(), times.end());
    printf("launches %.1f ns\n", times[times.size() / 2]);
}

// A kernel of so many nanoseconds at a time; how many microseconds later than that the slowest
// ended.
static void spin(const Weights &weights, CUfunction kernel, uint64_t nanoseconds, double until,
                 double *worst, unsigned *count) {
    check(cudaFree(nullptr), "cudaFree"); // this thread has the context from now on
    Client client;
    for (*count = 0, *worst = 0; seconds() < until; ++*count) {
        const double start = seconds();
        check((cudaError_t)kernels().spin(kernel, weights.pieces[0].to, nanoseconds, client.sum,
                                          client.stream),
              "cuLaunchKernel");
        check(cudaStreamSynchronize(client.stream), "cudaStreamSynchronize");
        if (*count) // the first one loads code
            *worst = std::max(*worst, (seconds() - start) * 1e6 - (double)nanoseconds / 1e3);
    }
}

static void busy(const Weights &weights, double until, std::istringstream &lengths) {
    std::vector<uint64_t> all;
    for (uint64_t one; lengths >> one;)
        all.push_back(one);
    std::vector<double> worst(all.size());
    std::vector<unsigned> count(all.size());
    std::vector<std::thread> threads;
    const CUfunction kernel = kernels().named("test_spin"); // by the thread that has a context
    for (size_t i = 0; i < all.size(); i++)
        threads.emplace_back(
            [&, i] { spin(weights, kernel, all[i], until, &worst[i], &count[i]); });
    for (std::thread &thread : threads)
        thread.join();
    printf("busy");
    for (size_t i = 0; i < all.size(); i++)
        printf(" %u %.0f", count[i], worst[i]);
    printf("\n");
}

// --- answers ---

static int try_write(const std::string &how, uint32_t *to) {
    static const uint32_t zeros[64] = {};
    int code = -1;
    if (how == "copy")
        code = cudaMemcpy(to, zeros, sizeof(zeros), cudaMemcpyHostToDevice);
    else if (how == "set" && !(code = cudaMemset(to, 0, sizeof(zeros))))
        code = cudaDeviceSynchronize();
    else if (how == "kernel")
        code = write_by_kernel(to);
    (void)cudaGetLastError();
    return code;
}

static void answer(const Weights &weights, const std::string &line) {
    std::istringstream words(line);
    std::string question;
    size_t count = 0;
    unsigned pause = 0;
    words >> question >> count;
    if (question == "busy") {
        busy(weights, seconds() + (double)count / 1e3, words);
        fflush(stdout);
        return;
    }
    words >> pause;
    if (question == "sum")
        printf("sum %016llx\n", (unsigned long long)sum(weights));
    else if (question == "handle")
        print_handle(weights.allocations[0]);
    else if (question == "requests")
        requests(weights, count, pause);
    else if (question == "launches")
        launches(count);
    else
        printf("%s %d\n", question.c_str(), try_write(question, weights.pieces[0].to));
    fflush(stdout);
}

static Weights start(const char *path, Options &options) {
    const double started = seconds();
    use_device();
    check(cudaFree(nullptr), "cudaFree"); // the context
    if (!options["how"].empty() && options["how"] != "attach")
        kernels();
    const double loading = seconds();
    const Weights weights = load(path, options);
    printf("ready load %.4f start %.4f\n", seconds() - loading, loading - started);
    fflush(stdout);
    return weights;
}

static int leave(const Weights &weights) {
    for (void *allocation : weights.allocations)
        check(cudaFree(allocation), "cudaFree");
    printf("ended\n");
    return 0;
}

static int serve(const char *path, Options &options) {
    char line[64];
    const Weights weights = start(path, options);
    while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
        line[strcspn(line, "\n")] = '\0';
        answer(weights, line);
    }
    return leave(weights);
}

// --- stress: the weights are changed in all ways, put back, and summed after each step ---

static void change_and_check(const Piece &piece, std::minstd_rand &random) {
    uint32_t mine[64], seen[64];
    const size_t words = std::min<size_t>(64, piece.bytes / 4);
    const size_t at = random() % (piece.bytes / 4 - words + 1);
    for (uint32_t &word : mine)
        word = (uint32_t)random();
    check(cudaMemcpy(piece.to + at, mine, words * 4, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemcpy(seen, piece.to + at, words * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (memcmp(mine, seen, words * 4) != 0) {
        printf("wrong: what was written is not there\n");
        exit(9);
    }
}

static void put_back(const Weights &weights, const Piece &piece) {
    check(cudaMemcpy(piece.to, weights.words(piece), piece.bytes, cudaMemcpyHostToDevice),
          "cudaMemcpy");
}

static void step(Weights &weights, const char *path, Options &options, std::minstd_rand &random) {
    const Piece &piece = weights.pieces[random() % weights.pieces.size()];
    switch (random() % 8) {
    case 0: // all anew
        for (void *allocation : weights.allocations)
            check(cudaFree(allocation), "cudaFree");
        munmap((void *)weights.file, weights.size);
        weights = load(path, options);
        break;
    case 1:
        check(cudaMemset(piece.to, (int)random() % 256, piece.bytes), "cudaMemset");
        put_back(weights, piece);
        break;
    case 2:
    case 3:
        change_and_check(piece, random);
        put_back(weights, piece);
        break;
    default: // time to be merged
        usleep(50000);
    }
}

static bool input_has_ended() {
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    return poll(&in, 1, 0) != 0;
}

static int stress(const char *path, unsigned seed, Options &options) {
    Weights weights = start(path, options);
    const uint64_t right = sum_of_file(weights);
    std::minstd_rand random(seed);
    size_t steps = 0;
    for (; !input_has_ended(); steps++) {
        step(weights, path, options, random);
        if (sum(weights) != right) {
            printf("wrong: the sum after step %zu\n", steps);
            return 9;
        }
        if (steps % STEPS_A_LINE == 0)
            printf("steps %zu\n", steps);
        fflush(stdout);
    }
    printf("steps %zu\n", steps);
    return leave(weights);
}

// --- words ---

static Options options_of(int argc, char **argv, int first) {
    Options options;
    for (int i = first; i < argc; i++) {
        const std::string word = argv[i];
        options[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    return options;
}

static int make_file(int argc, char **argv) {
    const size_t bytes = strtoull(argv[3], nullptr, 10);
    std::vector<Part> parts = {{0, bytes, (uint32_t)atoi(argv[4])}};
    for (int i = 5; i + 2 < argc; i += 3)
        parts.push_back({strtoull(argv[i], nullptr, 10), strtoull(argv[i + 1], nullptr, 10),
                         (uint32_t)atoi(argv[i + 2])});
    return make(argv[2], bytes, parts);
}

static int print_used() {
    size_t left, total;
    check(cudaMemGetInfo(&left, &total), "cudaMemGetInfo");
    printf("%zu\n", total - left);
    return 0;
}

int main(int argc, char **argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    Options options = options_of(argc, argv, what == "stress" ? 4 : 3);
    if (what == "make" && argc >= 5)
        return make_file(argc, argv);
    if (what == "serve" && argc >= 3)
        return serve(argv[2], options);
    if (what == "stress" && argc >= 4)
        return stress(argv[2], (unsigned)atoi(argv[3]), options);
    return what == "used" ? print_used() : 2;
}
