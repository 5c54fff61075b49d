#include "bindings/js_gguf_tokenizer.h"

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/js_values.h"

namespace kvasm {
namespace {

using emscripten::val;

val Text(const GgufMetadata& metadata, const char* key) {
  const auto* text = FindGguf<std::string>(metadata, key);
  return text == nullptr ? val::null() : val(*text);
}

val Texts(const GgufMetadata& metadata, const char* key) {
  const auto* texts = FindGguf<GgufStrings>(metadata, key);
  if (texts == nullptr) return val::null();
  val view = val::object();
  view.set("bytes", val(emscripten::typed_memory_view(
                        texts->bytes.size(),
                        reinterpret_cast<const uint8_t*>(texts->bytes.data()))));
  view.set("ends", View(texts->ends));
  return view;
}

}  // namespace

val GgufTokenizerToJs(const GgufMetadata& metadata) {
  const auto* types =
      FindGguf<std::vector<int32_t>>(metadata, "tokenizer.ggml.token_type");
  val tokenizer = val::object();
  tokenizer.set("model", Text(metadata, "tokenizer.ggml.model"));
  tokenizer.set("pre", Text(metadata, "tokenizer.ggml.pre"));
  tokenizer.set("tokens", Texts(metadata, "tokenizer.ggml.tokens"));
  tokenizer.set("merges", Texts(metadata, "tokenizer.ggml.merges"));
  tokenizer.set("tokenTypes", types == nullptr ? val::null() : View(*types));
  return tokenizer;
}

}  // namespace kvasm
