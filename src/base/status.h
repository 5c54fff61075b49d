// Failure as a value: a code that programs branch on, and a message for people that
// says what was wrong, where, and what to do.

#ifndef KVASM_BASE_STATUS_H_
#define KVASM_BASE_STATUS_H_

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace kvasm {

enum class StatusCode {
  kOk,
  kInvalidArgument,
  kInvalidConfig,
  kInvalidModel,
  kTruncated,
  kUnsupported,
  kOutOfMemory,
  kContextFull,
  kNonFinite,
};

// The code's name at the API ("invalid-model"); empty for kOk. Static storage.
const char* StatusCodeName(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() { return {}; }

// A T, or the reason there is none.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  // Implicit, so that functions return either as it is.
  // NOLINTNEXTLINE(google-explicit-constructor)
  StatusOr(T value) : value_(std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  StatusOr(Status status) : status_(std::move(status)) { assert(!status_.ok()); }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() {
    assert(ok());
    return *value_;
  }
  const T& value() const {
    assert(ok());
    return *value_;
  }
  T* operator->() { return &value(); }
  T& operator*() { return value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

#define KVASM_RETURN_IF_ERROR(expression)        \
  do {                                           \
    ::kvasm::Status kvasm_status = (expression); \
    if (!kvasm_status.ok()) return kvasm_status; \
  } while (false)

}  // namespace kvasm

#endif  // KVASM_BASE_STATUS_H_
