// Text as whole numbers, and back.
//
//   const artel::data::TokenizerPtr tokenizer =
//       artel::data::make_tokenizer("bpe 300", "to be or not to be");
//   const std::string same = tokenizer->decode(tokenizer->encode("not to be"));
//
// A tokenizer is immutable: all functions may be called from several threads at once. The
// tokenizers here that work on bytes or byte pairs restore any text unchanged; those with a closed
// vocabulary say so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace artel::data {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The tokens by number, as UTF-8 text that people can read and files can hold; all different.
  virtual const std::vector<std::string>& names() const = 0;
  int64_t size() const { return static_cast<int64_t>(names().size()); }

  // Text cut before a white-space character that follows another character gives the same tokens
  // as the whole.
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  // Throws for a number that is not a token.
  virtual std::string decode(std::span<const int32_t> tokens) const = 0;

  // Writes the files from which `open_tokenizer` restores the same tokenizer.
  virtual void save(const std::filesystem::path& folder) const = 0;

 protected:
  // The token, or an error that names the largest one.
  size_t checked(int32_t token) const;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

// 256 tokens: the bytes. Restores any text.
TokenizerPtr byte_tokenizer();

// The characters (code points) that occur in a text, ascending. `encode` throws for any other.
TokenizerPtr character_tokenizer(std::string_view text);
TokenizerPtr character_tokenizer(std::vector<std::string> characters);

// A tokenizer from a folder or file: characters.json, vocab.json with merges.txt, vocab.txt, or
// tokenizer.json; or that of a language model, *.gguf. Throws for a file that is damaged, and for a
// path that holds none of these.
TokenizerPtr open_tokenizer(const std::filesystem::path& path);
// The tokenizer files in a folder, including files that configure the tokenizer.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& folder);

// A tokenizer by name: "character" (the characters of the text), "byte", "bpe N" or "wordpiece N"
// (byte pairs or pieces learnt from the first 16 MiB of the text until there are N tokens), or the
// path of files that open_tokenizer knows.
TokenizerPtr make_tokenizer(const std::string& name, std::string_view text);

// The printable alphabet of GPT-2: each byte as one visible character, and the bytes of such text.
// `from_printable` throws for characters outside the alphabet; `where` begins the message.
std::string to_printable(std::string_view bytes);
std::string from_printable(std::string_view text, std::string_view where);
// The bytes in the order of that alphabet, which is also their order in GPT-2's vocabulary.
const std::vector<unsigned char>& printable_order();

}  // namespace artel::data
