// weights.hpp - weights in a file, and how a server brings them onto the card.
#pragma once

#include "kernels.hpp"
#include "named_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

static const size_t CHUNK = 64 << 20;
static const size_t ODD = 12345; // by so much a buffer with a hole is longer than its file

typedef std::map<std::string, std::string> Options;

struct Piece {
    uint32_t *to; // on the card; word by word
    size_t at;    // in the file
    size_t bytes;
};

struct Weights {
    const char *file;
    size_t size;
    std::vector<void *> allocations;
    std::vector<size_t> sizes;
    std::vector<Piece> pieces;

    const uint32_t *words(const Piece &piece) const {
        return (const uint32_t *)(file + piece.at);
    }
};

// --- the file ---

struct Part {
    size_t from, to; // bytes
    uint32_t seed;
};

// Later parts win.
static uint32_t seed_at(const std::vector<Part> &parts, size_t byte) {
    uint32_t seed = 0;
    for (const Part &part : parts)
        seed = part.from <= byte && byte < part.to ? part.seed : seed;
    return seed;
}

static bool make_chunk(int file, const std::vector<Part> &parts, size_t from, size_t bytes) {
    std::vector<uint32_t> chunk(bytes / 4);
    for (size_t i = 0; i < chunk.size(); i += 1024) { // seeds change at multiples of 4 KiB
        const uint32_t seed = seed_at(parts, from + i * 4);
        for (size_t k = i; k < std::min(i + 1024, chunk.size()); k++)
            chunk[k] = word_at(from / 4 + k, seed);
    }
    return pwrite(file, chunk.data(), bytes, (off_t)from) == (ssize_t)bytes;
}

static int make(const char *path, size_t bytes, const std::vector<Part> &parts) {
    const int file = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    std::atomic<size_t> next{0};
    std::atomic<bool> good{file >= 0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < std::min(8u, std::thread::hardware_concurrency()); i++)
        threads.emplace_back([&] {
            for (size_t at; (at = next.fetch_add(CHUNK)) < bytes && good;)
                if (!make_chunk(file, parts, at, std::min(CHUNK, bytes - at)))
                    good = false;
        });
    for (std::thread &thread : threads)
        thread.join();
    return good && close(file) == 0 ? 0 : 3;
}

static void map_file(Weights &weights, const char *path) {
    struct stat about;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &about) != 0 || about.st_size <= 0)
        exit(3);
    weights.size = (size_t)about.st_size;
    void *at = mmap(nullptr, weights.size, PROT_READ, MAP_PRIVATE, file, 0);
    if (at == MAP_FAILED)
        exit(3);
    weights.file = (const char *)at;
    close(file);
}

// --- what goes where ---

static char *allocate(Weights &weights, size_t bytes) {
    void *at;
    check(cudaMalloc(&at, bytes), "cudaMalloc");
    weights.allocations.push_back(at);
    weights.sizes.push_back(bytes);
    return (char *)at;
}

static void place_layers(Weights &weights, size_t layers) {
    const size_t bytes = weights.size / layers;
    for (size_t i = 0; i < layers; i++) {
        char *to = allocate(weights, bytes);
        for (size_t done = 0; done < bytes; done += CHUNK)
            weights.pieces.push_back(
                {(uint32_t *)(to + done), i * bytes + done, std::min(CHUNK, bytes - done)});
    }
}

// Tensors of all sizes in one allocation, gaps of some hundred bytes between them, a hole of 8 % in
// the middle that nothing is copied into, and an end at an odd place.
static void place_tensors(Weights &weights) {
    const size_t from = weights.size / 100 * 46 / 4 * 4, to = weights.size / 100 * 54 / 4 * 4;
    char *buffer = allocate(weights, weights.size + ODD);
    std::minstd_rand random(7);
    for (size_t at = 0; at < weights.size; at += 100 + random() % 200 * 4) {
        if (at >= from && at < to)
            at = to;
        const size_t most =
            random() % 4 ? weights.size / 80 : std::min<size_t>(weights.size, 16384);
        const size_t end = at < from ? from : weights.size;
        const size_t bytes = std::min(end - at, (most / 2 + random() % (most / 2)) / 4 * 4);
        weights.pieces.push_back({(uint32_t *)(buffer + at), at, bytes});
        at += bytes;
    }
}

// --- onto the card ---

static NamedKernels &kernels() {
    static NamedKernels all;
    return all;
}

static void add_by_kernel(uint32_t *to, size_t words, uint32_t more) {
    if (kernels().run("test_add", to, words, &more) != 0) {
        printf("test_add cannot be launched\n");
        exit(3);
    }
}

// What a server does that quantises on the card: the file's bytes go to another place, and a kernel
// computes the weights from them.
static void compute(const Piece &piece, const void *from) {
    void *scratch;
    check(cudaMalloc(&scratch, piece.bytes), "cudaMalloc");
    check(cudaMemcpy(scratch, from, piece.bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaMemcpy(piece.to, scratch, piece.bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy");
    add_by_kernel(piece.to, piece.bytes / 4, 1);
    check(cudaFree(scratch), "cudaFree");
}

static void load_piece(const Weights &weights, const Piece &piece, const std::string &how) {
    std::vector<char> buffer;
    const void *from = weights.words(piece);
    if (how == "read") {
        buffer.assign((const char *)from, (const char *)from + piece.bytes);
        from = buffer.data();
    }
    if (how == "computed")
        compute(piece, from);
    else
        check(cudaMemcpy(piece.to, from, piece.bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    if (how == "changed") // in place
        add_by_kernel(piece.to, piece.bytes / 4, 1);
}

// By one thread in the file's order, by several in any.
static void load_pieces(const Weights &weights, const std::string &how, unsigned count) {
    std::vector<Piece> order = weights.pieces;
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    if (count > 1)
        std::shuffle(order.begin(), order.end(), std::minstd_rand(std::random_device{}()));
    const auto work = [&] {
        use_device();
        for (size_t i; (i = next++) < order.size();)
            load_piece(weights, order[i], how);
    };
    for (unsigned i = 1; i < count; i++)
        threads.emplace_back(work);
    work();
    for (std::thread &thread : threads)
        thread.join();
}

static Weights load(const char *path, Options &options) {
    Weights weights{};
    const std::string how = options["how"];
    map_file(weights, path);
    if (options["layout"] == "hole")
        place_tensors(weights);
    else
        place_layers(weights, std::max<size_t>(1, strtoul(options["layers"].c_str(), nullptr, 10)));
    if (how != "attach")
        load_pieces(weights, how, std::max(1, atoi(options["threads"].c_str())));
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return weights;
}

// --- sums in which the place of each word counts ---

static uint64_t sum(const Weights &weights) {
    uint64_t all = 0;
    for (const Piece &piece : weights.pieces)
        all = all * 31 + sum_words(piece.to, piece.bytes / 4);
    return all;
}

static uint64_t sum_of_file(const Weights &weights) {
    uint64_t all = 0;
    for (const Piece &piece : weights.pieces) {
        uint64_t one = 0;
        for (size_t i = 0; i < piece.bytes / 4; i++)
            one += (i + 1) * weights.words(piece)[i];
        all = all * 31 + one;
    }
    return all;
}
