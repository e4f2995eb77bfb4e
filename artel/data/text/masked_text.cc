#include "artel/data/text/masked_text.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/data/text/text.h"

namespace artel::data {
namespace {

constexpr int64_t kMarks = 3;  // [CLS] and two [SEP]
constexpr double kMaskedShare = 0.15;

class MaskedText : public Dataset {
 public:
  MaskedText(Tensor tokens, std::shared_ptr<const WordPiece> tokenizer,
             const MaskedTextOptions& options)
      : seed_(options.seed),
        parts_(token_windows(std::move(tokens), tokenizer->size(),
                             {.context = options.context - kMarks, .stride = options.stride})),
        mask_(tokenizer->number("[MASK]")),
        first_(tokenizer->number("[CLS]")),
        separator_(tokenizer->number("[SEP]")) {
    layout_.input = {2, options.context};
    layout_.input_type = DType::i32;
    layout_.target = {options.context};
    layout_.classes = tokenizer->size();
    layout_.class_names = tokenizer->names();
    layout_.tokenizer = std::move(tokenizer);
  }

  int64_t size() const override { return parts_->size(); }
  const SampleLayout& layout() const override { return layout_; }

  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    const int64_t context = layout_.target[0], room = context - kMarks, half = room / 2;
    const std::span x(reinterpret_cast<int32_t*>(input.data()), static_cast<size_t>(2 * context));
    const std::span y(reinterpret_cast<int32_t*>(target.data()), static_cast<size_t>(context));
    Random random{seed_, hash_name("masked text"), static_cast<uint64_t>(index)};
    const bool follows = size() < 2 || random.below(2) == 0;
    std::vector<int32_t> text = window(index);
    if (!follows) {
      const int64_t other = (index + 1 + static_cast<int64_t>(random.below(size() - 1))) % size();
      const std::vector<int32_t> elsewhere = window(other);
      std::copy(elsewhere.begin() + half, elsewhere.end(), text.begin() + half);
    }
    // [CLS] a [SEP] b [SEP], then the types.
    x[0] = first_;
    std::copy_n(text.begin(), half, x.begin() + 1);
    x[half + 1] = separator_;
    std::copy(text.begin() + half, text.end(), x.begin() + half + 2);
    x[context - 1] = separator_;
    std::fill_n(x.begin() + context, half + 2, 0);
    std::fill(x.begin() + context + half + 2, x.end(), 1);
    std::fill(y.begin(), y.end(), kIgnoredTarget);
    y[0] = follows ? 0 : 1;
    hide(x, y, half, random);
  }

 private:
  std::vector<int32_t> window(int64_t index) const {
    std::vector<int32_t> tokens(static_cast<size_t>(parts_->layout().input[0])), next = tokens;
    parts_->read(index, std::as_writable_bytes(std::span(tokens)),
                 std::as_writable_bytes(std::span(next)));
    return tokens;
  }

  // Every sample hides the same number of tokens: the first in a random order.
  void hide(std::span<int32_t> x, std::span<int32_t> y, int64_t half, Random& random) const {
    std::vector<int64_t> places(y.size() - kMarks);
    for (size_t i = 0; i < places.size(); ++i)
      places[i] = static_cast<int64_t>(i) + (static_cast<int64_t>(i) < half ? 1 : 2);
    const auto count =
        std::max<int64_t>(1, std::llround(kMaskedShare * static_cast<double>(places.size())));
    for (int64_t i = 0; i < count; ++i) {
      std::swap(places[i], places[i + random.below(places.size() - i)]);
      int32_t& token = x[places[i]];
      y[places[i]] = token;
      const float kind = random.uniform();
      if (kind < 0.8f)
        token = mask_;
      else if (kind < 0.9f)
        token = static_cast<int32_t>(random.below(layout_.classes));
    }
  }

  uint64_t seed_;
  DatasetPtr parts_;
  int32_t mask_, first_, separator_;
  SampleLayout layout_;
};

}  // namespace

DatasetPtr masked_text(Tensor tokens, std::shared_ptr<const WordPiece> tokenizer,
                       const MaskedTextOptions& options) {
  require(options.context >= kMarks + 2, ErrorKind::invalid_argument,
          "[masked text] context: got {}, expected at least {}", options.context, kMarks + 2);
  return std::make_shared<MaskedText>(std::move(tokens), std::move(tokenizer), options);
}

}  // namespace artel::data
