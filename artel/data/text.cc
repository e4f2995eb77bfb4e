#include "artel/data/text.h"

#include <charconv>
#include <cmath>

#include "artel/base/bytes.h"
#include "artel/data/fetch.h"
#include "artel/data/masked_text.h"
#include "artel/data/text/byte_pair.h"
#include "artel/data/text/token_file.h"

namespace artel::data {
namespace {

constexpr size_t kTrainingBytes = size_t{16} << 20;  // of text, from which byte pairs are learnt
constexpr size_t kMostInMemory = size_t{16} << 20;   // larger texts are tokenised into a file

template <typename T>
int64_t element(const Tensor& tokens, int64_t i) {
  return reinterpret_cast<const T*>(tokens.raw())[i];
}

int64_t token_at(const Tensor& tokens, int64_t i) {
  switch (tokens.dtype()) {
    case DType::u8:
      return element<uint8_t>(tokens, i);
    case DType::i16:
      return element<int16_t>(tokens, i);
    case DType::i32:
      return element<int32_t>(tokens, i);
    default:
      return element<int64_t>(tokens, i);
  }
}

// The number in a name such as "bpe 4096".
int64_t size_in(const std::string& name) {
  int64_t size = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + name.find(' ') + 1, end, size);
  require(error == std::errc() && rest == end, ErrorKind::invalid_argument,
          "[tokenizer] got '{}', expected a number of tokens such as 'bpe 4096'", name);
  return size;
}

SampleLayout window_layout(const WindowOptions& options, int64_t vocabulary,
                           TokenizerPtr tokenizer) {
  SampleLayout layout;
  layout.input = layout.target = {options.context};
  layout.input_type = DType::i32;
  layout.classes = vocabulary;
  if (tokenizer) layout.class_names = tokenizer->names();
  layout.tokenizer = std::move(tokenizer);
  return layout;
}

class TokenWindows : public Dataset {
 public:
  TokenWindows(Tensor tokens, SampleLayout layout, int64_t stride)
      : tokens_(std::move(tokens)),
        layout_(std::move(layout)),
        stride_(stride > 0 ? stride : layout_.input[0]) {
    require(layout_.input[0] > 0, ErrorKind::invalid_argument, "a context of {} tokens",
            layout_.input[0]);
    require(size() > 0, ErrorKind::invalid_argument,
            "{} tokens are not enough for a context of {}; try a smaller context",
            tokens_.elements(), layout_.input[0]);
  }

  int64_t size() const override {
    const int64_t room = tokens_.elements() - layout_.input[0] - 1;
    return room < 0 ? 0 : room / stride_ + 1;
  }
  const SampleLayout& layout() const override { return layout_; }

  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    auto* x = reinterpret_cast<int32_t*>(input.data());
    auto* y = reinterpret_cast<int32_t*>(target.data());
    const int64_t first = index * stride_, context = layout_.input[0];
    for (int64_t i = 0; i <= context; ++i) {
      const int32_t token = known_token(first + i);
      if (i < context) x[i] = token;
      if (i > 0) y[i - 1] = token;
    }
  }

 private:
  int32_t known_token(int64_t place) const {
    const int64_t token = token_at(tokens_, place);
    require(token >= 0 && token < layout_.classes, ErrorKind::corrupt,
            "token {} of the text is {}, expected 0 to {}", place, token, layout_.classes - 1);
    return static_cast<int32_t>(token);
  }

  Tensor tokens_;
  SampleLayout layout_;
  int64_t stride_;
};

}  // namespace

DatasetPtr token_windows(Tensor tokens, int64_t vocabulary, const WindowOptions& options,
                         TokenizerPtr tokenizer) {
  const DType type = tokens.dtype();
  require(type == DType::u8 || type == DType::i16 || type == DType::i32 || type == DType::i64,
          ErrorKind::invalid_argument, "tokens of type {}, expected whole numbers",
          to_string(type));
  return std::make_shared<TokenWindows>(
      std::move(tokens), window_layout(options, vocabulary, std::move(tokenizer)), options.stride);
}

TokenizerPtr make_tokenizer(const std::string& name, std::string_view text) {
  if (name == "character") return character_tokenizer(text);
  if (name == "byte") return byte_tokenizer();
  const std::string_view sample = text.substr(0, kTrainingBytes);
  if (name.starts_with("bpe ")) return byte_pair_tokenizer(train_byte_pair(sample, size_in(name)));
  if (name.starts_with("wordpiece ")) return train_word_piece(sample, size_in(name));
  require(std::filesystem::exists(name), ErrorKind::invalid_argument,
          "[tokenizer] got '{}', expected character, byte, 'bpe N', 'wordpiece N' or a path of its "
          "files",
          name);
  return open_tokenizer(name);
}

Split text(const std::filesystem::path& path, double test_fraction, const TextOptions& options) {
  const Bytes bytes = map_file(path);
  require(test_fraction > 0 && test_fraction < 1, ErrorKind::invalid_argument,
          "the test fraction is {}, expected a number between 0 and 1", test_fraction);
  const TokenizerPtr tokenizer = make_tokenizer(options.tokenizer, bytes.text());
  const auto pieces = std::dynamic_pointer_cast<const WordPiece>(tokenizer);
  require(!options.masked || pieces, ErrorKind::invalid_argument,
          "[text] masked tokens: got the tokenizer '{}', expected one of WordPiece; try 'wordpiece "
          "4096'",
          options.tokenizer);
  const Tensor tokens = bytes.data.size() <= kMostInMemory
                            ? tokenise(bytes.text(), *tokenizer)
                            : token_file(path, *tokenizer, data_folder() / "tokens");
  const int64_t count = tokens.elements(), context = options.windows.context;
  const int64_t cut = count - std::llround(static_cast<double>(count) * test_fraction);
  const auto part = [&](int64_t begin, int64_t end, int64_t stride) {
    const Tensor rows = tokens.rows(begin, end);
    return options.masked ? masked_text(rows, pieces, {context, stride, options.seed})
                          : token_windows(rows, tokenizer->size(), {context, stride}, tokenizer);
  };
  return {part(0, cut, options.windows.stride), part(cut, count, 0)};
}

}  // namespace artel::data
