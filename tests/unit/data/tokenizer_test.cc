// Tokenizers: what they promise for any text, known encodings, and damaged files.
#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/base/random.h"
#include "artel/data/text/byte_pair.h"
#include "artel/data/text/text.h"
#include "artel/data/text/token_file.h"
#include "artel/data/text/unicode.h"
#include "artel/data/text/word_piece.h"
#include "tests/support/error_of.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    result.emplace_back(first_word(text));
    text.remove_prefix(result.back().size());
  }
  return result;
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> result;
  for (const int32_t token : tokenizer.encode(text)) result.push_back(tokenizer.names()[token]);
  return result;
}

using Strings = std::vector<std::string>;

TEST(Unicode, RejectsWhatIsNotUtf8) {
  EXPECT_EQ(unicode::first_code_point("é").code, 0xE9u);
  EXPECT_EQ(unicode::first_code_point("😀").code, 0x1F600u);
  for (const char* bad : {"\x80", "\xC0\x80", "\xE2\x82", "\xED\xA0\x80", "\xF5\x80\x80\x80"})
    EXPECT_EQ(unicode::first_code_point(bad).code, unicode::kInvalid) << bad;
}

TEST(Words, FollowTheRuleOfGpt2) {
  EXPECT_EQ(words("Hello world's  end, it's 2024!!\n\n next"),
            (Strings{"Hello", " world", "'s", " ", " end", ",", " it", "'s", " 2024", "!!", "\n\n",
                     " next"}));
  EXPECT_EQ(words("a \n b"), (Strings{"a", " \n", " b"}));
  EXPECT_EQ(words("  "), (Strings{"  "}));
  EXPECT_EQ(words("größe½ 東京"), (Strings{"größe", "½", " 東京"}));
  EXPECT_EQ(words("don'T 'tis"), (Strings{"don", "'", "T", " '", "tis"}));
}

TEST(Words, NumbersCanBeSingle) {
  const auto stretches = [](std::string_view text) {
    Strings result;
    while (!text.empty()) {
      result.emplace_back(first_without_numbers(text));
      text.remove_prefix(result.back().size());
    }
    return result;
  };
  EXPECT_EQ(stretches("in 2024½ x"), (Strings{"in ", "2", "0", "2", "4", "½", " x"}));
  EXPECT_EQ(stretches("none"), (Strings{"none"}));
}

// The tokenizer of SmolLM2: digits are single, marks are tokens, and it survives a save.
TEST(BytePair, ReadsGgufFilesAndKeepsHowTheyCut) {
  Strings names;
  for (const unsigned char byte : printable_order())
    names.push_back(to_printable(std::string(1, static_cast<char>(byte))));
  std::vector<int32_t> kinds(256, 1);
  for (const char* more : {"<|im_start|>", "[end]", "12", "th", "Ġth"}) {
    names.emplace_back(more);
    kinds.push_back(names.size() <= 258 ? 3 : 1);
  }
  const auto file_with = [&](const std::string& cut) {
    GgufWriter writer;
    writer.add("tokenizer.ggml.model", "gpt2");
    writer.add("tokenizer.ggml.pre", cut);
    writer.add("tokenizer.ggml.tokens", names);
    writer.add("tokenizer.ggml.token_type", kinds);
    writer.add("tokenizer.ggml.merges", Strings{"1 2", "t h", "Ġ th"});
    return parse_gguf(make_bytes(writer.file(), "model.gguf"));
  };
  const TokenizerPtr digits = read_byte_pair(file_with("smollm"));
  const std::string text = "th<|im_start|> th12 [end]";
  const Strings expected = {"th", "<|im_start|>", "Ġth", "1", "2", "Ġ", "[end]"};
  EXPECT_EQ(pieces(*digits, text), expected);
  EXPECT_EQ(digits->decode(digits->encode(text)), text);
  const TemporaryFolder folder;
  digits->save(folder.path());
  EXPECT_EQ(pieces(*open_tokenizer(folder.path()), text), expected);
  EXPECT_EQ(pieces(*read_byte_pair(file_with("gpt-2")), "12"), (Strings{"12"}));
  EXPECT_THROW(read_byte_pair(file_with("llama-bpe")), Error);
}

// SmolLM2's vocabulary lacks bytes that never occurred in its text.
TEST(BytePair, SaysWhichByteHasNoToken) {
  GgufWriter writer;
  writer.add("tokenizer.ggml.model", "gpt2");
  writer.add("tokenizer.ggml.pre", "gpt-2");
  writer.add("tokenizer.ggml.tokens", Strings{"a", "b"});
  writer.add("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1});
  writer.add("tokenizer.ggml.merges", Strings());
  const TokenizerPtr two = read_byte_pair(parse_gguf(make_bytes(writer.file(), "model.gguf")));
  EXPECT_EQ(pieces(*two, "aba"), (Strings{"a", "b", "a"}));
  EXPECT_NE(error_of([&] { two->encode("abc"); }).find("the byte 0x63 has no token"),
            std::string::npos);
}

TEST(BytePair, MergesTheMostFrequentPairAndTheGreatestOfEquals) {
  const std::vector<Merge> merges = train_byte_pair(
      "low low low low low lower lower widest widest widest newest newest newest "
      "newest newest newest",
      257 + 6);
  const std::vector<Merge> expected = {{"s", "t"},  {"e", "st"},  {"o", "w"},
                                       {"l", "ow"}, {"w", "est"}, {"n", "e"}};
  EXPECT_EQ(merges, expected);
}

TEST(BytePair, GivesAnyBytesBack) {
  const TokenizerPtr tokenizer =
      byte_pair_tokenizer(train_byte_pair("the cat sat on the mat; the dog sat too", 300));
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  for (const std::string& text :
       {std::string("the cat’s naïve 東京 😀\n\n\tend  "), every, std::string()})
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_LT(tokenizer->encode("the sat").size(), 7u);
}

// By looking for the first of the best pairs again and again.
std::vector<std::string> merged_plainly(std::string_view word, const std::vector<Merge>& merges) {
  std::vector<std::string> parts;
  for (const char byte : word) parts.emplace_back(1, byte);
  for (const Merge& merge : merges)
    for (size_t i = 0; i + 1 < parts.size(); ++i)
      if (parts[i] == merge.first && parts[i + 1] == merge.second) {
        parts[i] += parts[i + 1];
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
  return parts;
}

TEST(BytePair, MergesByRankThenFromTheLeft) {
  Random random{5};
  for (int round = 0; round < 200; ++round) {
    const auto word = [&](size_t size) {
      std::string text;
      for (size_t i = 0; i < size; ++i) text += static_cast<char>('a' + random.below(3));
      return text;
    };
    const std::vector<Merge> merges = train_byte_pair(word(200) + " " + word(100), 257 + 30);
    const TokenizerPtr tokenizer = byte_pair_tokenizer(merges);
    const std::string text = word(1 + random.below(60));
    std::vector<std::string> parts;
    for (const int32_t token : tokenizer->encode(text))
      parts.push_back(tokenizer->decode({&token, 1}));
    EXPECT_EQ(parts, merged_plainly(text, merges)) << text;
  }
}

TEST(BytePair, ALongWordTakesNoMoreThanItsLength) {
  const TokenizerPtr tokenizer = byte_pair_tokenizer({{"a", "a"}, {"aa", "aa"}});
  EXPECT_EQ(tokenizer->encode(std::string(4 << 20, 'a')).size(), size_t{1} << 20);
}

TEST(BytePair, EndOfTextIsOneToken) {
  const TokenizerPtr tokenizer = byte_pair_tokenizer({});
  const std::vector<int32_t> tokens = tokenizer->encode("a<|endoftext|>b");
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[1], 256);
  EXPECT_EQ(tokenizer->decode(tokens), "a<|endoftext|>b");
}

TEST(BytePair, FilesGiveTheSameTokenizer) {
  const TemporaryFolder folder;
  const std::string text = "she sells sea shells by the sea shore, the shells she sells";
  const TokenizerPtr trained = byte_pair_tokenizer(train_byte_pair(text, 280));
  trained->save(folder.path());
  const TokenizerPtr read = open_tokenizer(folder.path());
  EXPECT_EQ(read->names(), trained->names());
  EXPECT_EQ(read->encode(text), trained->encode(text));
}

TEST(Tokenizers, SurviveARoundTripThroughFiles) {
  const TemporaryFolder folder;
  byte_tokenizer()->save(folder / "bytes");
  EXPECT_EQ(open_tokenizer(folder / "bytes")->encode("né"), byte_tokenizer()->encode("né"));
  character_tokenizer("née\n")->save(folder / "characters");
  EXPECT_EQ(open_tokenizer(folder / "characters")->names(), (Strings{"\n", "e", "n", "é"}));
}

// GPT-2's kind of tokenizer.json, with merges as older and as newer files have them.
TEST(Tokenizers, OneFileHoldsVocabularyAndMerges) {
  const TemporaryFolder folder;
  const TokenizerPtr expected = byte_pair_tokenizer({{"a", "b"}, {" ", "ab"}});
  nlohmann::json file = {
      {"model",
       {{"type", "BPE"}, {"vocab", nlohmann::json::object()}, {"merges", {"a b", "Ġ ab"}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"added_tokens", nlohmann::json::array()}};
  for (size_t i = 0; i + 1 < expected->names().size(); ++i)
    file["model"]["vocab"][expected->names()[i]] = i;
  file["added_tokens"].push_back({{"id", expected->size() - 1}, {"content", "<|endoftext|>"}});
  const auto open = [&] {
    write_file_atomically(folder / "tokenizer.json", file.dump());
    return open_tokenizer(folder.path());
  };
  const std::string text = "ab abba née<|endoftext|> ab";
  EXPECT_EQ(open()->encode(text), expected->encode(text));
  file["model"]["merges"] = nlohmann::json::parse(R"([["a", "b"], ["Ġ", "ab"]])");
  EXPECT_EQ(open()->encode(text), expected->encode(text));
  EXPECT_EQ(open()->names(), expected->names());
  file["model"]["merges"] = nlohmann::json::parse(R"(["a b", "Ġ"])");
  EXPECT_THROW(open(), Error);
  file["model"]["merges"] = {"a b", "Ġ ab"};
  file["pre_tokenizer"] = {{"type", "Metaspace"}};
  try {
    open();
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("pre_tokenizer 'Metaspace', expected GPT-2's"),
              std::string::npos)
        << error.what();
  }
}

TEST(Tokenizers, DamagedFilesAreErrorsWithTheirPlace) {
  const TemporaryFolder folder;
  byte_pair_tokenizer({{"a", "b"}})->save(folder.path());
  const auto reason = [&](const std::string& file, const std::string& content) {
    const std::string before = read_file(folder / file);
    write_file_atomically(folder / file, content);
    std::string message = "accepted";
    try {
      open_tokenizer(folder.path());
    } catch (const Error& error) {
      message = error.what();
    }
    write_file_atomically(folder / file, before);
    return message;
  };
  EXPECT_NE(reason("merges.txt", "#version: 0.2\na b\nabc\n").find("merges.txt:3"),
            std::string::npos);
  EXPECT_NE(reason("merges.txt", "a c\n").find("'ac' is not in the vocabulary"), std::string::npos);
  EXPECT_NE(reason("merges.txt", "東 京\n").find("does not stand for a byte"), std::string::npos);
  EXPECT_NE(reason("vocab.json", "{\"a\": 0, \"b\": 0}").find("expected each of 0 to 1 once"),
            std::string::npos);
  EXPECT_NE(reason("vocab.json", "[1, 2]").find("vocab.json"), std::string::npos);
  EXPECT_NE(reason("vocab.json", "{\"a\": ").find("vocab.json"), std::string::npos);
  EXPECT_EQ(reason("merges.txt", "#version: 0.2\na b\n"), "accepted");
  EXPECT_THROW(open_tokenizer(folder / "nothing"), Error);
  EXPECT_THROW(character_tokenizer("abc")->encode("abd"), Error);
  EXPECT_THROW(byte_tokenizer()->decode(std::vector<int32_t>{256}), Error);
}

WordPiece small_word_piece() {
  return WordPiece({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "a", ",", "naive",
                    "東", "京", "$", "##s"},
                   true, "test");
}

TEST(WordPiece, CutsWordsGreedily) {
  const WordPiece tokenizer = small_word_piece();
  EXPECT_EQ(pieces(tokenizer, "UNaffable, a"), (Strings{"un", "##aff", "##able", ",", "a"}));
  EXPECT_EQ(pieces(tokenizer, "unknown a"), (Strings{"[UNK]", "a"}));
  EXPECT_EQ(pieces(tokenizer, std::string(101, 'a')), (Strings{"[UNK]"}));
}

TEST(WordPiece, FoldsAccentsAndSetsIdeographsApart) {
  const WordPiece tokenizer = small_word_piece();
  EXPECT_EQ(pieces(tokenizer, "Naïve東京$as"), (Strings{"naive", "東", "京", "$", "a", "##s"}));
  EXPECT_EQ(pieces(tokenizer, "na\u0308i\u00ADve"), (Strings{"naive"}));  // combining, soft hyphen
}

TEST(WordPiece, FollowsBertInControlsAndCrossedOutSigns) {
  for (const char* control : {"\v", "\f", "\u0085"})
    EXPECT_EQ(basic_words(std::string("a") + control + "b", true), (Strings{"ab"}));
  for (const char* space : {"\t", "\n", "\r", " ", "\u00A0", "\u2028", "\u3000"})
    EXPECT_EQ(basic_words(std::string("a") + space + "b", true), (Strings{"a", "b"}));
  // Without their accents these are signs of ASCII.
  EXPECT_EQ(basic_words("a\u2260b\u226Ec\u226Fd\u1FEFe", true),
            (Strings{"a", "=", "b", "<", "c", ">", "d", "`", "e"}));
  EXPECT_EQ(basic_words("a\u2260b", false), (Strings{"a\u2260b"}));
}

TEST(WordPiece, MarksSentencesAndFitsThemIntoPositions) {
  const WordPiece tokenizer = small_word_piece();
  const WordPiece::Sentence pair = tokenizer.sentence("a a a a", "naive", 7, true);
  EXPECT_EQ(pair.tokens, (std::vector<int32_t>{2, 7, 7, 7, 3, 9, 3}));
  EXPECT_EQ(pair.types, (std::vector<int32_t>{0, 0, 0, 0, 0, 1, 1}));
  EXPECT_TRUE(pair.cut);
  const WordPiece::Sentence one = tokenizer.sentence("a", "", 5, true);
  EXPECT_FALSE(one.cut);
  EXPECT_EQ(one.tokens, (std::vector<int32_t>{2, 7, 3, 0, 0}));
}

TEST(WordPiece, ReadsVocabularies) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nword\n");
  EXPECT_EQ(pieces(*open_tokenizer(folder / "vocab.txt"), "WORD"), (Strings{"word"}));
  write_file_atomically(folder / "tokenizer_config.json", "{\"do_lower_case\": false}");
  EXPECT_EQ(pieces(*open_tokenizer(folder / "vocab.txt"), "WORD"), (Strings{"[UNK]"}));
  std::filesystem::remove(folder / "tokenizer_config.json");
  write_file_atomically(folder / "latin.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n\xE9t\xE9\n");
  EXPECT_THROW(read_word_piece(folder / "latin.txt"), Error);
  small_word_piece().save(folder.path());
  EXPECT_EQ(pieces(*open_tokenizer(folder / "tokenizer.json"), "A"), (Strings{"a"}));
  write_file_atomically(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\nword\n");
  EXPECT_THROW(open_tokenizer(folder / "vocab.txt"), Error);
  write_file_atomically(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[SEP]\n");
  EXPECT_THROW(open_tokenizer(folder / "vocab.txt"), Error);
}

// A text of several pieces.
std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < (size_t{5} << 19); ++i)
    text += "line " + std::to_string(i % 100) + " of it\n";
  return text;
}

TEST(TokeniseOnce, HoldsTheTokensOfTheWholeText) {
  const TemporaryFolder folder;
  const std::string text = long_text();
  write_file_atomically(folder / "a.txt", text);
  const TokenisedText kept = tokenise_once(folder / "a.txt", "bpe 300", folder / "tokens");
  const TokenizerPtr tokenizer = make_tokenizer("bpe 300", text);
  EXPECT_EQ(kept.tokenizer->names(), tokenizer->names());
  const std::vector<int32_t> expected = tokenizer->encode(text);
  ASSERT_EQ(kept.tokens.elements(), static_cast<int64_t>(expected.size()));
  EXPECT_EQ(kept.tokens.dtype(), DType::i16);
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(kept.tokens.values<int16_t>()[i], expected[i]) << i;
  const TokenisedText in_memory = tokenise_file(folder / "a.txt", "bpe 300");
  EXPECT_TRUE(
      std::ranges::equal(in_memory.tokens.values<int16_t>(), kept.tokens.values<int16_t>()));
}

// Folders with tokens below `folder`.
std::vector<std::filesystem::path> kept_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory()) folders.push_back(entry.path());
  return folders;
}

TEST(TokeniseOnce, IsDoneAgainOnlyForAnotherTextOrTokenizer) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.txt", std::string("abab"));
  const auto count = [&](const std::string& tokenizer) {
    tokenise_once(folder / "a.txt", tokenizer, folder / "tokens");
    return kept_in(folder / "tokens").size();
  };
  EXPECT_EQ(count("byte"), 1u);
  const auto file = kept_in(folder / "tokens")[0] / "tokens.npy";
  const auto written = std::filesystem::last_write_time(file);
  EXPECT_EQ(count("byte"), 1u);
  EXPECT_EQ(std::filesystem::last_write_time(file), written);
  EXPECT_EQ(count("character"), 2u);
  write_file_atomically(folder / "a.txt", std::string("abba"));
  EXPECT_EQ(count("character"), 3u);
  character_tokenizer("abc")->save(folder / "own");
  EXPECT_EQ(count((folder / "own").string()), 4u);
  character_tokenizer("abcd")->save(folder / "own");
  EXPECT_EQ(count((folder / "own").string()), 5u);
  write_file_atomically(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nabba\n");
  EXPECT_EQ(count((folder / "vocab.txt").string()), 6u);
  write_file_atomically(folder / "tokenizer_config.json", "{\"do_lower_case\": false}");
  EXPECT_EQ(count((folder / "vocab.txt").string()), 7u);
}

TEST(TokeniseOnce, TellsTextsOfOneNameSizeAndTimeApart) {
  const TemporaryFolder folder;
  for (const auto& [place, content] : {std::pair("one", "abab"), std::pair("two", "bbaa")}) {
    std::filesystem::create_directories(folder / place);
    write_file_atomically(folder / place / "input.txt", std::string(content));
  }
  std::filesystem::last_write_time(folder / "two/input.txt",
                                   std::filesystem::last_write_time(folder / "one/input.txt"));
  for (const auto& [place, first] : {std::pair("one", 'a'), std::pair("two", 'b')})
    EXPECT_EQ(tokenise_once(folder / place / "input.txt", "byte", folder / "tokens")
                  .tokens.values<uint8_t>()[0],
              byte_tokenizer()->encode(std::string(1, first))[0]);
}

TEST(TokeniseOnce, LeavesNothingUnfinishedThatCounts) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.txt", std::string("abab"));
  tokenise_once(folder / "a.txt", "character", folder / "tokens");
  const auto kept = kept_in(folder / "tokens")[0];
  // As after a crash in the middle.
  std::filesystem::rename(kept, kept.string() + ".unfinished");
  write_file_atomically(kept.string() + ".unfinished/tokens.npy", std::string("half"));
  EXPECT_EQ(tokenise_once(folder / "a.txt", "character", folder / "tokens").tokens.elements(), 4);
  EXPECT_EQ(kept_in(folder / "tokens"), std::vector{kept});
  // A failure leaves nothing behind.
  character_tokenizer("a")->save(folder / "own");
  try {
    tokenise_once(folder / "a.txt", (folder / "own").string(), folder / "tokens");
    FAIL() << "unknown character";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a.txt"), std::string::npos) << error.what();
  }
  EXPECT_EQ(kept_in(folder / "tokens").size(), 1u);
}

TEST(BytePair, TruncatedMergesAreNoticed) {
  const TemporaryFolder folder;
  byte_pair_tokenizer({{"a", "b"}, {"ab", "c"}})->save(folder.path());
  write_file_atomically(folder / "merges.txt", std::string("#version: 0.2\na b\n"));
  try {
    open_tokenizer(folder.path());
    FAIL() << "a token that nothing makes";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("merges.txt] token 'abc'"), std::string::npos)
        << error.what();
  }
}

TEST(TextSet, MayHaveNoTestPart) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.txt", std::string("abababababab"));
  const Split split = text(folder / "a.txt", 0, {.windows = {.context = 4}});
  EXPECT_EQ(split.train->size(), 2);
  EXPECT_EQ(split.test->size(), 0);
  EXPECT_THROW(text(folder / "a.txt", 0.1, {.windows = {.context = 4}}), Error);
}

TEST(TextSet, CarriesItsTokenizer) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.txt", std::string("abc abd abe abf abg abh abi abj abk abl"));
  const Split split =
      text(folder / "a.txt", 0.3, {.windows = {.context = 4}, .tokenizer = "bpe 258"});
  ASSERT_TRUE(split.train->layout().tokenizer);
  EXPECT_EQ(split.train->layout().classes, split.train->layout().tokenizer->size());
  EXPECT_THROW(text(folder / "a.txt", 0.3, {.windows = {.context = 4}, .tokenizer = "bpe"}), Error);
  EXPECT_THROW(text(folder / "a.txt", 0.3, {.windows = {.context = 4}, .tokenizer = "bpe x"}),
               Error);
}

}  // namespace
}  // namespace artel::data
