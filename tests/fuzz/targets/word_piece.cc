#include "artel/data/text/word_piece.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::word_piece {

// vocab.txt or, if it begins with a brace, tokenizer.json. What can be read can be used and saved.
void read(const Bytes& bytes) {
  static const TemporaryFolder folder;
  const std::string input(bytes.text());
  const auto file = folder / (input.starts_with('{') ? "fuzz.json" : "fuzz.txt");
  write_input(file, input);
  const auto tokenizer = data::read_word_piece(file);
  const auto sentence = tokenizer->sentence(input, "the rest", 16, true);
  require(sentence.tokens.size() == 16 && sentence.types.size() == 16, ErrorKind::internal,
          "a sentence of {} tokens, expected 16", sentence.tokens.size());
  tokenizer->decode(sentence.tokens);
  tokenizer->save(folder.path());
  data::read_word_piece(folder / "tokenizer.json");
}

std::vector<std::string> seeds() {
  const std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nr\n##est\n\xC3\xA9\n";
  return {text, R"({"model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, )"
                R"("[SEP]": 3, "the": 4}}, "normalizer": {"lowercase": true}})"};
}

}  // namespace artel::fuzz::word_piece
