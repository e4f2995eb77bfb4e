#include "artel/data/text/text.h"

#include <cmath>

#include "artel/base/bytes.h"
#include "artel/base/with_where.h"
#include "artel/data/fetch.h"
#include "artel/data/text/masked_text.h"
#include "artel/data/text/text_lines.h"
#include "artel/data/text/token_file.h"

namespace artel::data {
namespace {

constexpr size_t kMostInMemory = size_t{4} << 20;  // larger texts are tokenised into a file

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
    require(layout_.input[0] > 0, ErrorKind::invalid_argument,
            "context: got {}, expected 1 token or more", layout_.input[0]);
    require(size() > 0, ErrorKind::invalid_argument,
            "{} tokens are not enough for a context of {}; try a smaller context or a longer text",
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

Split text(const std::filesystem::path& path, double test_fraction, const TextOptions& options) {
  require(test_fraction >= 0 && test_fraction < 1, ErrorKind::invalid_argument,
          "the test fraction is {}, expected 0 or more and less than 1", test_fraction);
  if (options.lines) {
    require(!options.masked, ErrorKind::invalid_argument,
            "data.lines: got true with data.task = \"masked\", expected one of them");
    const Bytes all = map_file(path);
    const TokenizerPtr own =
        with_where(all.name, [&] { return make_tokenizer(options.tokenizer, all.text()); });
    return split(text_lines(all, own, options.windows.context), test_fraction, options.seed);
  }
  const auto [tokenizer, tokens] =
      map_file(path).data.size() <= kMostInMemory
          ? tokenise_file(path, options.tokenizer)
          : tokenise_once(path, options.tokenizer, data_folder() / "tokens");
  const auto pieces = std::dynamic_pointer_cast<const WordPiece>(tokenizer);
  require(!options.masked || pieces, ErrorKind::invalid_argument,
          "[text] masked tokens: got the tokenizer '{}', expected a WordPiece tokenizer; try "
          "'wordpiece "
          "4096'",
          options.tokenizer);
  const int64_t count = tokens.elements(), context = options.windows.context;
  const int64_t cut = count - std::llround(static_cast<double>(count) * test_fraction);
  const auto part = [&, &tokens = tokens, &tokenizer = tokenizer](const char* name, int64_t begin,
                                                                  int64_t end, int64_t stride) {
    const Tensor rows = tokens.rows(begin, end);
    return with_where(fmt::format("{}, {} part", path.string(), name), [&] {
      return options.masked ? masked_text(rows, pieces, {context, stride, options.seed})
                            : token_windows(rows, tokenizer->size(), {context, stride}, tokenizer);
    });
  };
  const DatasetPtr train = part("training", 0, cut, options.windows.stride);
  return {train, test_fraction > 0 ? part("test", cut, count, 0) : subset(train, {})};
}

}  // namespace artel::data
