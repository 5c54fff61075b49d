// A thread pool with threads of the operating system. Not for WebAssembly, where the
// package's JavaScript starts them.

#ifndef KVASM_BASE_NATIVE_THREADS_H_
#define KVASM_BASE_NATIVE_THREADS_H_

#include <cstddef>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace kvasm {

class NativeThreads {
 public:
  explicit NativeThreads(size_t threads)
      : pool_(threads, std::thread::hardware_concurrency()) {
    for (size_t i = 1; i < pool_.threads(); ++i) {
      threads_.emplace_back([this] { pool_.WorkerLoop(); });
    }
  }
  NativeThreads(const NativeThreads&) = delete;
  NativeThreads& operator=(const NativeThreads&) = delete;
  ~NativeThreads() {
    pool_.Stop();
    for (std::thread& thread : threads_) thread.join();
  }

  ThreadPool* pool() { return &pool_; }

 private:
  ThreadPool pool_;
  std::vector<std::thread> threads_;
};

}  // namespace kvasm

#endif  // KVASM_BASE_NATIVE_THREADS_H_
