#include "base/status.h"

namespace kvasm {

const char* StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "";
    case StatusCode::kInvalidArgument:
      return "invalid-argument";
    case StatusCode::kInvalidConfig:
      return "invalid-config";
    case StatusCode::kInvalidModel:
      return "invalid-model";
    case StatusCode::kTruncated:
      return "truncated";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kOutOfMemory:
      return "out-of-memory";
    case StatusCode::kContextFull:
      return "context-full";
    case StatusCode::kNonFinite:
      return "non-finite";
  }
  return "";
}

}  // namespace kvasm
