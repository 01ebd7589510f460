// A stand-in for the header of AMD's tools for FPGAs, as far as emitted kernels use it: channels without a limit, for one thread.
#ifndef NYALA_TESTS_HLS_STREAM_H
#define NYALA_TESTS_HLS_STREAM_H

#include <cstdio>
#include <cstdlib>
#include <deque>

namespace hls {

template <typename T> class stream {
    std::deque<T> elements;

  public:
    stream() = default;
    explicit stream(const char *) {}
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;

    bool empty() const { return elements.empty(); }

    void write(const T &element) { elements.push_back(element); }

    T read() {
        if (elements.empty()) {
            std::fputs("an empty channel is read\n", stderr);
            std::abort();
        }
        T element = elements.front();
        elements.pop_front();
        return element;
    }
};

} // namespace hls

#endif
