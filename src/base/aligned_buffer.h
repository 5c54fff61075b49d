// Memory that is allocated once, aligned for vectors and cache lines.

#ifndef KVASM_BASE_ALIGNED_BUFFER_H_
#define KVASM_BASE_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace kvasm {

inline constexpr size_t kAlignment = 64;

// n rounded up to a multiple of 16 elements: the row stride of every activation, so
// that kernels may work on whole vectors and panels of 16 without a tail.
constexpr size_t PaddedSize(size_t n) { return (n + 15) / 16 * 16; }

// a * b, or the largest size where that does not fit: Create refuses it. 32-bit wasm
// needs it.
constexpr size_t SaturatedProduct(size_t a, size_t b) {
  constexpr size_t kMax = std::numeric_limits<size_t>::max();
  return b != 0 && a > kMax / b ? kMax : a * b;
}

// Owns `size` zeroed elements. Move only.
template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivial_v<T>);

 public:
  AlignedBuffer() = default;

  // kOutOfMemory when it cannot be had; `what` names it in the message.
  static StatusOr<AlignedBuffer> Create(size_t size, const char* what) {
    AlignedBuffer buffer;
    if (size == 0) return buffer;
    if (size > (std::numeric_limits<size_t>::max() - kAlignment) / sizeof(T)) {
      return OutOfMemory(what);
    }
    const size_t bytes = (size * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    buffer.data_.reset(static_cast<T*>(std::aligned_alloc(kAlignment, bytes)));
    if (buffer.data_ == nullptr) return OutOfMemory(what);
    std::memset(buffer.data_.get(), 0, bytes);
    buffer.size_ = size;
    return buffer;
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }
  T& operator[](size_t i) { return data_.get()[i]; }
  const T& operator[](size_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };

  static Status OutOfMemory(const char* what) {
    return Status(StatusCode::kOutOfMemory,
                  std::string("not enough memory for ") + what +
                      "; use a smaller model or a shorter context");
  }

  std::unique_ptr<T, Free> data_;
  size_t size_ = 0;
};

// Creates a buffer in place: for members that are filled one after the other.
template <typename T>
Status Allocate(size_t size, const char* what, AlignedBuffer<T>* buffer) {
  StatusOr<AlignedBuffer<T>> created = AlignedBuffer<T>::Create(size, what);
  if (!created.ok()) return created.status();
  *buffer = std::move(*created);
  return OkStatus();
}

}  // namespace kvasm

#endif  // KVASM_BASE_ALIGNED_BUFFER_H_
