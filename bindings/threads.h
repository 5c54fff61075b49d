// The threads that all engines of an instance compute with.

#ifndef KVASM_BINDINGS_THREADS_H_
#define KVASM_BINDINGS_THREADS_H_

#include "base/thread_pool.h"

namespace kvasm {

#if defined(__wasm_atomics__)
// Null before JavaScript has started any.
ThreadPool* SharedThreadPool();
#else
inline ThreadPool* SharedThreadPool() { return nullptr; }
#endif

}  // namespace kvasm

#endif  // KVASM_BINDINGS_THREADS_H_
