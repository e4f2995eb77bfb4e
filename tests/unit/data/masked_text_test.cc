#include "artel/data/text/masked_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/data/sets.h"
#include "artel/data/text/byte_pair.h"
#include "artel/data/text/labelled_text.h"
#include "artel/data/text/text.h"
#include "artel/data/text/word_piece.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

constexpr int64_t kContext = 23;

std::shared_ptr<const WordPiece> some_pieces(int64_t words) {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (int64_t i = 0; i < words; ++i) tokens.push_back(fmt::format("word{}", i));
  return std::make_shared<WordPiece>(std::move(tokens), true, "test");
}

// The tokens 5, 6, 7, ...: a token tells its place.
Tensor ascending(int64_t count) {
  Tensor tokens({count}, DType::i32);
  for (int64_t i = 0; i < count; ++i) tokens.values<int32_t>()[i] = static_cast<int32_t>(5 + i);
  return tokens;
}

struct Sample {
  std::vector<int32_t> x, y;
  bool operator==(const Sample&) const = default;
};

Sample read(const Dataset& set, int64_t index) {
  Sample sample{std::vector<int32_t>(2 * kContext), std::vector<int32_t>(kContext)};
  set.read(index, std::as_writable_bytes(std::span(sample.x)),
           std::as_writable_bytes(std::span(sample.y)));
  return sample;
}

TEST(MaskedText, HidesTokensAndPairsSentences) {
  const int64_t count = 20 * 200 + 1;
  const DatasetPtr set = masked_text(ascending(count), some_pieces(count), {.context = kContext});
  ASSERT_EQ(set->size(), 200);
  EXPECT_EQ(set->layout().input, (Shape{2, kContext}));
  int64_t masked = 0, unchanged = 0, apart = 0;
  for (int64_t i = 0; i < set->size(); ++i) {
    const Sample s = read(*set, i);
    EXPECT_EQ(s.x[0], 2);   // [CLS]
    EXPECT_EQ(s.x[11], 3);  // [SEP] after 10 tokens, and at the end
    EXPECT_EQ(s.x[22], 3);
    for (int64_t p = 0; p < kContext; ++p) EXPECT_EQ(s.x[kContext + p], p > 11 ? 1 : 0);
    apart += s.y[0];
    int64_t labels = 0;
    std::vector<int32_t> whole(s.x.begin(), s.x.begin() + kContext);
    for (int64_t p = 1; p < kContext; ++p) {
      if (s.y[p] == -100) continue;
      ++labels;
      masked += s.x[p] == 4;
      unchanged += s.x[p] == s.y[p];
      whole[p] = s.y[p];
    }
    EXPECT_EQ(labels, 3);  // 15 % of 20
    for (int64_t p = 1; p <= 10; ++p) EXPECT_EQ(whole[p], 5 + 20 * i + p - 1);
    EXPECT_EQ(whole[12] == whole[10] + 1, s.y[0] == 0);
    EXPECT_EQ(whole[21], whole[12] + 9);
  }
  EXPECT_NEAR(static_cast<double>(masked) / 600, 0.8, 0.06);
  EXPECT_NEAR(static_cast<double>(unchanged) / 600, 0.1, 0.05);
  EXPECT_NEAR(static_cast<double>(apart) / 200, 0.5, 0.12);
}

TEST(MaskedText, IsAFunctionOfSeedAndSample) {
  const auto set = [](uint64_t seed) {
    return masked_text(ascending(500), some_pieces(500), {.context = kContext, .seed = seed});
  };
  EXPECT_EQ(read(*set(1), 3), read(*set(1), 3));
  EXPECT_NE(read(*set(1), 3), read(*set(2), 3));
  EXPECT_THROW(masked_text(ascending(500), some_pieces(500), {.context = 4}), Error);
  EXPECT_THROW(masked_text(ascending(10), some_pieces(10), {.context = kContext}), Error);
}

TEST(MaskedText, NeedsPieces) {
  const TemporaryFolder folder;
  std::string words;
  for (int i = 0; i < 400; ++i) words += "One fine day the lowest tide was the slowest. ";
  write_file_atomically(folder / "a.txt", words);
  const TextOptions options = {
      .windows = {.context = 16}, .tokenizer = "wordpiece 60", .masked = true};
  const Split split = text(folder / "a.txt", 0.1, options);
  EXPECT_LE(split.train->layout().classes, 60);  // fewer: no pair is left that occurs twice
  EXPECT_GT(split.train->layout().classes, 40);
  EXPECT_GT(split.test->size(), 0);
  EXPECT_THROW(text(folder / "a.txt", 0.1, {.masked = true}), Error);
  EXPECT_THROW(text(folder / "a.txt", 0.1, {.tokenizer = "wordpiece many"}), Error);
}

TEST(WordPieceTraining, LearnsFrequentWordsAndKnowsAllCharacters) {
  std::string sample;
  for (int i = 0; i < 50; ++i) sample += "The lowest tide, the slowest tides; ";
  const auto tokenizer = train_word_piece(sample, 64);
  EXPECT_LE(tokenizer->size(), 64);
  const auto& names = tokenizer->names();
  const std::set<std::string> known(names.begin(), names.end());
  for (const char* piece : {"[PAD]", "[MASK]", "the", "tide", "##s", "t"})
    EXPECT_TRUE(known.contains(piece)) << piece;
  EXPECT_EQ(names[0], "[PAD]");  // 0, as networks expect
  EXPECT_EQ(tokenizer->encode("the TIDE").size(), 2u);
  const std::vector<int32_t> strange = tokenizer->encode("hotel");
  EXPECT_EQ(std::count(strange.begin(), strange.end(), tokenizer->number("[UNK]")), 0);
  EXPECT_EQ(tokenizer->encode("xyz"), std::vector<int32_t>{tokenizer->number("[UNK]")});
  EXPECT_THROW(train_word_piece(sample, 10), Error);
}

TEST(LabelledText, ReadsTablesOfTextsAndPairs) {
  const TemporaryFolder folder;
  const auto tokenizer = some_pieces(4);
  tokenizer->save(folder / "tokenizer");
  write_file_atomically(
      folder / "a.csv",
      "text,kind\nword0 word1,good\nword2,bad\n\"word3, word0\",good\nword1,bad\n");
  const OpenOptions options{.path = folder / "a.csv",
                            .test_fraction = 0.5,
                            .context = 5,
                            .tokenizer = folder / "tokenizer"};
  const Split split = open_set("labelled_text", options);
  EXPECT_EQ(split.train->size(), 2);
  EXPECT_EQ(split.train->layout().class_names, (std::vector<std::string>{"bad", "good"}));
  EXPECT_TRUE(split.train->layout().tokenizer);

  write_file_atomically(folder / "b.csv", "a,b,same\nword0,word1,yes\nword2,word3,no\n");
  const DatasetPtr pairs =
      labelled_text(labelled_texts(parse_csv(map_file(folder / "b.csv")), ""), tokenizer, 7);
  std::vector<int32_t> x(14), y(1);
  pairs->read(0, std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(y)));
  EXPECT_EQ(x, (std::vector<int32_t>{2, 5, 3, 6, 3, 0, 0, 0, 0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(y[0], 1);

  OpenOptions wrong = options;
  wrong.tokenizer = "nonsense";
  EXPECT_THROW(open_set("labelled_text", wrong), Error);
  wrong = options;
  wrong.table.target = "sort";
  EXPECT_THROW(open_set("labelled_text", wrong), Error);
  write_file_atomically(folder / "c.csv", "a,b\n1,yes\n2,no\n");
  EXPECT_THROW(labelled_texts(parse_csv(map_file(folder / "c.csv")), "b"), Error);
  for (const char* label : {"0.5", "-1", "1e30"}) {
    write_file_atomically(folder / "d.csv", fmt::format("a,b\nword0,{}\nword1,1\n", label));
    EXPECT_THROW(labelled_texts(parse_csv(map_file(folder / "d.csv")), "b"), Error) << label;
  }
}

// Each text has a letter of its own, which only its own vocabulary knows.
TEST(LabelledText, TheVocabularyKnowsNoTextThatIsHeldOut) {
  const TemporaryFolder temporary;
  constexpr int kTexts = 26;
  std::string table = "text,class\n";
  for (int i = 0; i < kTexts; ++i)
    table += fmt::format("{0}{0}{0},{1}\n", static_cast<char>('a' + i), i % 6 == 0 ? "b" : "a");
  const std::filesystem::path file = temporary.path() / "texts.csv";
  write_file_atomically(file, table);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Split parts = open_set("labelled_text", {.path = file,
                                                   .test_fraction = 0.3,
                                                   .seed = seed,
                                                   .context = 8,
                                                   .tokenizer = "wordpiece 100"});
    const std::vector<std::string>& names = parts.test->layout().tokenizer->names();
    const auto unknown = static_cast<int32_t>(std::ranges::find(names, "[UNK]") - names.begin());
    std::array<int32_t, 8> tokens = {};
    int32_t label = 0;
    for (const auto& [set, known] : {std::pair{parts.train, true}, std::pair{parts.test, false}})
      for (int64_t i = 0; i < set->size(); ++i) {
        set->read(i, std::as_writable_bytes(std::span(tokens)),
                  std::as_writable_bytes(std::span(&label, 1)));
        EXPECT_EQ(std::ranges::count(tokens, unknown) == 0, known) << seed << " " << i;
      }
  }
}

// The last position of a language model has seen the whole text.
TEST(LabelledText, OfOtherTokensEndsWithEndTokens) {
  const auto row = [](const TokenizerPtr& tokenizer, const std::string& text) {
    return TextRows(tokenizer, 4).row(text);
  };
  EXPECT_EQ(row(byte_tokenizer(), "ab").tokens, (std::vector<int32_t>{'a', 'b', '\n', '\n'}));
  EXPECT_FALSE(row(byte_tokenizer(), "abc").cut);
  EXPECT_EQ(row(byte_tokenizer(), "abcd").tokens, (std::vector<int32_t>{'a', 'b', 'c', '\n'}));
  EXPECT_TRUE(row(byte_tokenizer(), "abcd").cut);
  const TokenizerPtr pairs = byte_pair_tokenizer({});
  const auto end = static_cast<int32_t>(pairs->size() - 1);
  EXPECT_EQ(pairs->names()[static_cast<size_t>(end)], kEndOfText);
  EXPECT_EQ(row(pairs, "").tokens, std::vector<int32_t>(4, end));
  EXPECT_EQ(error_of([&] { TextRows(pairs, 4).row("a", "b"); }),
            "[labelled text] got pairs of texts, which need WordPiece tokens and a network of the "
            "BERT family; try data.tokenizer = \"wordpiece 8192\"");
  EXPECT_THROW(labelled_text({.texts = {"a"}, .seconds = {""}, .labels = {0}}, pairs, 4), Error);
}

TEST(LabelledText, SaysHowManyTextsWereCut) {
  const LabelledTexts texts{.texts = {"word0", "word0 word1 word2", "word1 word2 word3 word0"},
                            .labels = {0, 1, 0}};
  ::testing::internal::CaptureStderr();
  labelled_text(texts, some_pieces(4), 5);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "artel: 1 of 3 texts are longer than the context and cut to 5 tokens\n");
}

}  // namespace
}  // namespace artel::data
