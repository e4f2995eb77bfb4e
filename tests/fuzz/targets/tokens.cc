#include "artel/base/file.h"
#include "artel/data/text/masked_text.h"
#include "artel/data/text/text.h"
#include "artel/tensor/npy.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::tokens {
namespace {

const std::shared_ptr<const data::WordPiece>& tokenizer() {
  static const auto made = std::make_shared<const data::WordPiece>(
      std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"}, true, "-");
  return made;
}

void read_all(const data::Dataset& set) {
  std::vector<int32_t> x(set.layout().input_bytes() / sizeof(int32_t));
  std::vector<int32_t> y(set.layout().target_bytes() / sizeof(int32_t));
  for (int64_t i = 0; i < std::min<int64_t>(set.size(), 100); ++i) {
    set.read(i, std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(y)));
    for (const int32_t token : x)
      require(token >= 0 && token < tokenizer()->size(), ErrorKind::internal,
              "a sample has the token {}", token);
  }
}

}  // namespace

// A file of tokens, as windows and as masked text.
void read(const Bytes& bytes) {
  with_name(bytes, [&] {
    const Tensor tokens = parse_npy(bytes);
    read_all(*data::token_windows(tokens, tokenizer()->size(), {.context = 5}));
    read_all(*data::masked_text(tokens, tokenizer(), {.context = 9, .stride = 4}));
  });
}

std::vector<std::string> seeds() {
  const TemporaryFolder folder;
  write_npy(folder / "a.npy",
            Tensor::from<uint8_t>({15}, {5, 6, 5, 6, 6, 5, 6, 5, 5, 6, 5, 6, 5, 6, 6}));
  write_npy(folder / "b.npy", Tensor::from<int32_t>({8}, {5, 6, 5, 6, 5, 6, 5, 6}));
  return {read_file(folder / "a.npy"), read_file(folder / "b.npy")};
}

}  // namespace artel::fuzz::tokens
