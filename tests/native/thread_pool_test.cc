#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "allocation_counter.h"
#include "base/native_threads.h"

namespace kvasm {
namespace {

class ThreadPoolTest : public testing::TestWithParam<size_t> {};

TEST_P(ThreadPoolTest, DoesEachPieceOfManyJobsOnceAndReturnsWhenAllAreDone) {
  NativeThreads threads(GetParam());
  // Plain memory: that the caller sees it is the pool's doing.
  std::vector<int> done;
  for (size_t job = 0; job < 3000; ++job) {
    const size_t pieces = job % 37;
    done.assign(pieces, 0);
    threads.pool()->ParallelFor(pieces, [&](size_t piece) { ++done[piece]; });
    ASSERT_EQ(done, std::vector<int>(pieces, 1)) << "job " << job;
  }
}

TEST_P(ThreadPoolTest, EachJobSeesWhatTheOneBeforeWrote) {
  NativeThreads threads(GetParam());
  std::vector<uint64_t> a(50), b(50);
  std::iota(a.begin(), a.end(), 0);
  uint64_t expected = 49 * 50 / 2;
  for (int job = 0; job < 40; ++job) {
    // Every piece reads what another has written.
    threads.pool()->ParallelFor(50, [&](size_t i) { b[i] = a[49 - i] + 1; });
    threads.pool()->ParallelFor(50, [&](size_t i) { a[i] = b[(i + 7) % 50] + 1; });
    expected += 2 * 50;
    ASSERT_EQ(std::accumulate(a.begin(), a.end(), uint64_t{0}), expected);
  }
}

TEST_P(ThreadPoolTest, AllocatesNothing) {
  ThreadPool pool(GetParam(), 2);
  // A thread may allocate while it starts.
  std::atomic<size_t> started = 1;
  std::vector<std::thread> threads;
  for (size_t i = 1; i < pool.threads(); ++i) {
    threads.emplace_back([&] {
      ++started;
      pool.WorkerLoop();
    });
  }
  while (started < pool.threads()) std::this_thread::yield();
  const size_t allocations = AllocationCount();
  std::atomic<size_t> sum = 0;
  for (int i = 0; i < 100; ++i) {
    pool.ParallelFor(20, [&](size_t piece) { sum += piece; });
  }
  EXPECT_EQ(AllocationCount(), allocations);
  EXPECT_EQ(sum, 100u * 190);
  pool.Stop();
  for (std::thread& thread : threads) thread.join();
}

// 64 are far more than the machines that this runs on have processors.
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 8, 64));

TEST(ThreadPoolTest, ThreadsThatNeverComeAreNotWaitedFor) {
  ThreadPool pool(8, 8);
  std::vector<int> done(100, 0);
  pool.ParallelFor(done.size(), [&](size_t piece) { ++done[piece]; });
  EXPECT_EQ(done, std::vector<int>(100, 1));
}

TEST(ThreadPoolTest, ThreadsMayComeAtAnyTime) {
  ThreadPool pool(4, 2);
  std::vector<std::thread> threads;
  std::vector<int> done(50);
  for (int job = 0; job < 200; ++job) {
    if (job % 50 == 0) threads.emplace_back([&] { pool.WorkerLoop(); });
    done.assign(done.size(), 0);
    pool.ParallelFor(done.size(), [&](size_t piece) { ++done[piece]; });
    ASSERT_EQ(done, std::vector<int>(50, 1)) << "job " << job;
  }
  pool.Stop();
  for (std::thread& thread : threads) thread.join();
  // And after the end.
  pool.WorkerLoop();
}

TEST(ThreadPoolTest, OneThreadGoesThroughThePiecesInOrder) {
  ThreadPool pool(1, 8);
  std::vector<size_t> order;
  pool.ParallelFor(5, [&](size_t piece) { order.push_back(piece); });
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3, 4}));
}

TEST(ThreadPoolTest, TheCallerWaitsForAPieceThatAnotherHasInHand) {
  NativeThreads threads(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int job = 0; job < 20; ++job) {
    std::atomic<bool> other_began = false;
    bool other_finished = false;
    threads.pool()->ParallelFor(2, [&](size_t) {
      if (std::this_thread::get_id() == caller) {
        while (!other_began) std::this_thread::yield();
      } else {
        other_began = true;
        // Long enough for the caller to fall asleep.
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        other_finished = true;
      }
    });
    ASSERT_TRUE(other_finished);
  }
}

TEST(ThreadPoolDeathTest, AFailedThreadAbortsTheCallerWhoWaitsForIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail_while_the_caller_waits = [] {
    ThreadPool pool(2, 2);
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> claimed = false;
    std::thread worker([&] { pool.WorkerLoop(); });
    std::thread reporter([&] {
      while (!claimed) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      pool.Fail();
    });
    pool.ParallelFor(2, [&](size_t) {
      if (std::this_thread::get_id() == caller) {
        while (!claimed) std::this_thread::yield();
        return;
      }
      claimed = true;
      // Never done.
      for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
    });
  };
  EXPECT_DEATH(fail_while_the_caller_waits(), "");
}

TEST(ThreadPoolDeathTest, AThreadThatFailedBetweenJobsAbortsTheNext) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ThreadPool pool(2, 2);
  pool.Fail();
  EXPECT_DEATH(pool.ParallelFor(2, [](size_t) {}), "");
}

TEST(ThreadPoolDeathTest, AJobWithinAJobIsRefusedWhereAssertionsAre) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ThreadPool pool(2, 2);
  const auto nest = [&] {
    pool.ParallelFor(2, [&](size_t) { pool.ParallelFor(2, [](size_t) {}); });
  };
#if defined(NDEBUG)
  (void)nest;
  GTEST_SKIP() << "there are none in this build";
#else
  EXPECT_DEATH(nest(), "ParallelFor within ParallelFor");
#endif
}

}  // namespace
}  // namespace kvasm
