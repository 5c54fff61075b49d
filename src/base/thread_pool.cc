#include "base/thread_pool.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>

#include "base/futex.h"

namespace kvasm {
namespace {

// Some 20 microseconds, about what it takes to wake a thread. WebAssembly has no
// instruction for a pause, so it looks more often.
#if defined(__wasm__)
constexpr int kSpins = 20000;
#else
constexpr int kSpins = 500;
#endif

constexpr uint32_t kFailed = 1u << 31;

// Looks at the word until it is no longer `value`, but not for long.
bool SpinWhile(const std::atomic<uint32_t>& word, uint32_t value, int spins) {
  for (int i = 0; i < spins; ++i) {
    if (word.load(std::memory_order_acquire) != value) return false;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
  return word.load(std::memory_order_acquire) == value;
}

}  // namespace

ThreadPool::ThreadPool(size_t threads, size_t processors)
    : threads_(std::max<size_t>(threads, 1)),
      max_awake_(static_cast<uint32_t>(std::max<size_t>(processors, 2) - 1)),
      spins_(threads <= processors ? kSpins : 0) {}

void ThreadPool::Run(const Job& job) {
  assert(job.pieces < kFailed);
  assert(!running_ && "ParallelFor within ParallelFor");
  running_ = true;
  job_ = job;
  if (pending_.exchange(job.pieces) & kFailed) std::abort();
  left_.store(static_cast<int32_t>(job.pieces), std::memory_order_release);
  // Either a worker that goes to sleep sees the new epoch, or it is seen here among the
  // sleepers.
  epoch_.fetch_add(1);
  if (const uint32_t sleepers = sleepers_.load(); sleepers > 0) {
    FutexWake(&epoch_, std::min({sleepers, max_awake_, job.pieces - 1}));
  }
  Finish(DoPieces());
  WaitForOthers();
  running_ = false;
}

uint32_t ThreadPool::DoPieces() {
  uint32_t done = 0;
  // A look first, so that nobody counts far below 0.
  while (left_.load(std::memory_order_relaxed) > 0) {
    const int32_t left = left_.fetch_sub(1, std::memory_order_acq_rel);
    if (left <= 0) break;
    job_.run(job_.body, job_.pieces - static_cast<uint32_t>(left));
    ++done;
  }
  return done;
}

void ThreadPool::Finish(uint32_t pieces) {
  if (pieces == 0) return;
  // As for epoch_ and sleepers_ above.
  if (pending_.fetch_sub(pieces) == pieces && caller_sleeps_.load()) {
    FutexWake(&pending_, 1);
  }
}

void ThreadPool::WaitForOthers() {
  for (;;) {
    const uint32_t pending = pending_.load();
    if (pending & kFailed) std::abort();
    if (pending == 0) return;
    if (!SpinWhile(pending_, pending, spins_)) continue;
    caller_sleeps_.store(true);
    FutexWait(&pending_, pending);
    caller_sleeps_.store(false);
  }
}

void ThreadPool::WorkerLoop() {
  for (;;) {
    const uint32_t epoch = epoch_.load();
    if (stopping_.load()) return;
    Finish(DoPieces());
    if (!SpinWhile(epoch_, epoch, spins_)) continue;
    sleepers_.fetch_add(1);
    FutexWait(&epoch_, epoch);
    sleepers_.fetch_sub(1);
  }
}

void ThreadPool::Stop() {
  stopping_.store(true);
  epoch_.fetch_add(1);
  FutexWake(&epoch_, sleepers_.load());
}

void ThreadPool::Fail() {
  pending_.fetch_or(kFailed);
  FutexWake(&pending_, 1);
}

}  // namespace kvasm
