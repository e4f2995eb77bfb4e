#include "artel/data/text/labelled_text.h"
#include "artel/base/log.h"
#include "artel/data/text/word_piece.h"
#include "tests/fuzz/target.h"

namespace artel::fuzz::labelled_text {

void read(const Bytes& bytes) {
  set_log_level(LogLevel::error);  // warnings about cut texts do not matter here
  static const auto tokenizer = std::make_shared<const data::WordPiece>(
      std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "buy", "now", "##s"}, true, "-");
  const data::LabelledTexts texts = data::labelled_texts(data::parse_csv(bytes), "");
  if (!texts.texts.empty()) data::labelled_text(texts, tokenizer, 8);
}

std::vector<std::string> seeds() {
  return {"text,kind\nbuy now,spam\n\"see you, soon\",ham\n",
          "first,second,class\nbuy,nows,1\na b c d e f g,h,0\n"};
}

}  // namespace artel::fuzz::labelled_text
