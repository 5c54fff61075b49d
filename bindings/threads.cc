// What JavaScript needs to start threads. A thread is an instance of the same module
// with the same memory, in a Worker of its own that has none of the glue: it calls
// _emscripten_wasm_worker_initialize, which sets its stack and its thread-local
// storage, and then kvasm_run_thread. It must not allocate, nor call anything of
// JavaScript.

#include "bindings/threads.h"

#include <emscripten/bind.h>
#include <emscripten/emscripten.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace kvasm {
namespace {

// For the stack and the thread-local storage of one thread. Kernels keep a few vectors
// there.
constexpr size_t kStackBytes = 128 * 1024;

// Never deleted: threads may look at it until their Workers end.
ThreadPool* pool = nullptr;

// The address of kStackBytes bytes for a thread, which are never freed; 0 for none.
double AllocateStack() {
  return static_cast<double>(
      reinterpret_cast<uintptr_t>(std::aligned_alloc(16, kStackBytes)));
}

double StackBytes() { return static_cast<double>(kStackBytes); }

// Once, when all threads are known but none of them runs. `threads` includes the
// caller.
void MakeThreadPool(double threads, double processors) {
  pool = new ThreadPool(static_cast<size_t>(threads), static_cast<size_t>(processors));
}

}  // namespace

ThreadPool* SharedThreadPool() { return pool; }

EMSCRIPTEN_BINDINGS(kvasm_threads) {
  emscripten::function("allocateStack", &AllocateStack);
  emscripten::function("stackBytes", &StackBytes);
  emscripten::function("makeThreadPool", &MakeThreadPool);
}

}  // namespace kvasm

extern "C" {

// The life of a thread.
EMSCRIPTEN_KEEPALIVE void kvasm_run_thread() {
  kvasm::SharedThreadPool()->WorkerLoop();
}

// For a thread in which that ended by a trap.
EMSCRIPTEN_KEEPALIVE void kvasm_thread_failed() { kvasm::SharedThreadPool()->Fail(); }

}  // extern "C"
