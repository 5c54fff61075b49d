// A few threads that do one thing after the other together.

#ifndef KVASM_BASE_THREAD_POOL_H_
#define KVASM_BASE_THREAD_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace kvasm {

// Does not start threads, since only its environment knows how: base/native_threads.h
// does natively, a Worker of the package in WebAssembly. Each of them runs WorkerLoop.
//
// Pieces are claimed one by one, so that a thread that is slow, late, or never comes
// holds nobody up but for the piece it has in hand: the caller does what nobody else
// has claimed.
class ThreadPool {
 public:
  // threads: those that share the work, the caller of ParallelFor included; at least 1.
  // processors: those that the threads run on. With more threads than that nobody spins
  // while he waits, or he would do so in the way of those who work.
  ThreadPool(size_t threads, size_t processors);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t threads() const { return threads_; }

  // Calls body(piece) once for each piece below `pieces`, on any of the threads and in
  // any order, and returns when all are done. With one thread it is a plain loop.
  // Allocates nothing. Only one thread may call it at a time, and a body must not.
  // Aborts when a thread has failed.
  template <typename Body>
  void ParallelFor(size_t pieces, const Body& body) {
    if (threads_ == 1 || pieces <= 1) {
      for (size_t piece = 0; piece < pieces; ++piece) body(piece);
      return;
    }
    Run({[](const void* b, size_t piece) { (*static_cast<const Body*>(b))(piece); },
         std::addressof(body), static_cast<uint32_t>(pieces)});
  }

  // Works until Stop. Any number of threads may run it, whatever threads() is.
  void WorkerLoop();

  // Makes every WorkerLoop return, also those that begin later.
  void Stop();

  // For a thread whose WorkerLoop died: what it had claimed will never be done, so the
  // ParallelFor under way, or the next one, aborts.
  void Fail();

 private:
  struct Job {
    void (*run)(const void* body, size_t piece);
    const void* body;
    uint32_t pieces;
  };

  // With more than one thread.
  void Run(const Job& job);
  // Does pieces until none is left to claim, and says how many.
  uint32_t DoPieces();
  // Reports that many pieces as done.
  void Finish(uint32_t pieces);
  // Until all pieces are done.
  void WaitForOthers();

  const size_t threads_;
  const uint32_t max_awake_;  // Threads beside the caller that can run at once.
  const int spins_;

  // Written before left_ is set, and by nobody while a piece of it is unfinished.
  Job job_ = {};
  bool running_ = false;  // For an assertion.

  // Each on a cache line of its own: claims would slow the waiting down, and be slowed.
  static constexpr size_t kCacheLine = 64;
  // Pieces to be claimed; may fall below 0. To claim one is to count it down, and only
  // who has claimed one looks at the job: who comes late finds nothing, or the next
  // job.
  alignas(kCacheLine) std::atomic<int32_t> left_ = 0;
  // Pieces that are not done, and kFailed. The caller sleeps on it.
  alignas(kCacheLine) std::atomic<uint32_t> pending_ = 0;
  std::atomic<bool> caller_sleeps_ = false;
  // Counts jobs. Workers sleep on it.
  alignas(kCacheLine) std::atomic<uint32_t> epoch_ = 0;
  std::atomic<uint32_t> sleepers_ = 0;
  std::atomic<bool> stopping_ = false;
};

// The same by a pool that may be null: then by the caller alone.
template <typename Body>
void ParallelFor(ThreadPool* pool, size_t pieces, const Body& body) {
  if (pool != nullptr) {
    pool->ParallelFor(pieces, body);
  } else {
    for (size_t piece = 0; piece < pieces; ++piece) body(piece);
  }
}

}  // namespace kvasm

#endif  // KVASM_BASE_THREAD_POOL_H_
