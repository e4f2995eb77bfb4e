// Byte-pair encoding as GPT-2 does it (Sennrich et al., 2016; Radford et al., 2019).
//
// Text is cut into words by GPT-2's rule; a word starts as its bytes, and neighbours are joined,
// the earliest merge of the list first, until no merge applies. Decoding restores any bytes
// unchanged.
#pragma once

#include <utility>

#include "artel/data/text/tokenizer.h"
#include "artel/tensor/gguf.h"

namespace artel::data {

// GPT-2's end-of-document marker; a single token if the vocabulary has it.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

// Both parts of a merge, as bytes.
using Merge = std::pair<std::string, std::string>;

// The published files: vocab.json maps printable tokens to numbers, merges.txt holds one merge per
// line and may begin with "#version". Throws an Error of kind corrupt that names file and line for
// a merge without two parts, parts or results that are not in the vocabulary, tokens that no merge
// produces (except marks in angle brackets), and numbers that are not 0 to n - 1.
TokenizerPtr read_byte_pair(const std::filesystem::path& vocabulary,
                            const std::filesystem::path& merges);
// A tokenizer.json, which has both, of GPT-2's kind or of SmolLM's, where each digit is a word:
// another way to cut texts into words is refused by name.
TokenizerPtr read_byte_pair(const std::filesystem::path& tokenizer);
void save_byte_pair(const std::filesystem::path& folder, const std::vector<std::string>& names,
                    const std::vector<Merge>& merges);

// The tokenizer of a language model in a GGUF file. Throws an Error of kind unsupported for another
// kind than GPT-2's and SmolLM's.
TokenizerPtr read_byte_pair(const Gguf& file);

// Learns merges from a text until there are `size` tokens (bytes and kEndOfText included) or no
// pair is left that occurs twice. Among equally frequent pairs, the one with the greatest bytes is
// merged. The text is cut at kEndOfText.
std::vector<Merge> train_byte_pair(std::string_view text, int64_t size);
// Tokens in GPT-2's order: bytes, merges, kEndOfText.
TokenizerPtr byte_pair_tokenizer(std::vector<Merge> merges);

// The first word of a nonempty text by GPT-2's rule: a contraction such as 's; letters, digits, or
// other characters with at most one leading space; or white space, except a last space, which
// belongs to the next word. Never empty.
std::string_view first_word(std::string_view text);
// The part of a text before its first digit or other number or, if it begins with one, that
// character. `text` is not empty, nor is the result.
std::string_view first_without_numbers(std::string_view text);

}  // namespace artel::data
