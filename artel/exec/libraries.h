// The thread settings of oneDNN and OpenBLAS.
//
// Parallelism belongs to artel::ThreadPool alone: inside a pool thread both libraries run on that
// one thread, so a worker never uses more cores than it was given.
#pragma once

namespace artel {

// Makes oneDNN and OpenBLAS single-threaded for the calling thread; cheap after its first call in a
// thread. Meant as the `on_start` of a ThreadPool; kernels call it too before they enter a library,
// for callers outside a pool.
void limit_library_threads();

}  // namespace artel
