#include "artel/data/text/token_file.h"

#include <unistd.h>

#include <cstring>
#include <fstream>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/data/text/unicode.h"
#include "artel/tensor/npy.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPiece = size_t{1} << 20;  // bytes of text that are tokenised at a time
constexpr size_t kHeaderBytes = 128;

DType type_for(int64_t vocabulary) {
  if (vocabulary <= 256) return DType::u8;
  return vocabulary <= 32768 ? DType::i16 : DType::i32;
}

// Where to cut after about kPiece bytes: before white space that follows another character.
size_t piece_end(std::string_view text) {
  const auto space = [&](size_t i) {
    return unicode::is_space(static_cast<unsigned char>(text[i])) && text[i] >= 0;
  };
  for (size_t i = kPiece; i < text.size(); ++i)
    if (space(i) && !space(i - 1)) return i;
  return text.size();
}

template <typename T>
void append_as(std::string& bytes, const std::vector<int32_t>& tokens) {
  for (const int32_t token : tokens) {
    const auto value = static_cast<T>(token);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
}

// write(bytes) for the tokens of each piece, in the given type.
template <typename Write>
void for_each_piece(std::string_view text, const Tokenizer& tokenizer, DType type,
                    const Write& write) {
  for (std::string bytes; !text.empty(); bytes.clear()) {
    const size_t end = piece_end(text);
    const std::vector<int32_t> tokens = tokenizer.encode(text.substr(0, end));
    if (type == DType::u8)
      append_as<uint8_t>(bytes, tokens);
    else if (type == DType::i16)
      append_as<int16_t>(bytes, tokens);
    else
      append_as<int32_t>(bytes, tokens);
    write(bytes);
    text.remove_prefix(end);
  }
}

// Version 1.0 of NumPy's format, padded so that it can be written before the count is known.
std::string npy_header(DType type, int64_t count) {
  const char* name = type == DType::u8 ? "|u1" : type == DType::i16 ? "<i2" : "<i4";
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", name, count);
  text.resize(kHeaderBytes - 11, ' ');
  const auto length = static_cast<char>(kHeaderBytes - 10);
  return std::string("\x93NUMPY\x01\x00", 8) + length + '\0' + text + '\n';
}

fs::path file_name(const fs::path& text, const Tokenizer& tokenizer) {
  uint64_t key =
      mix_key({fs::file_size(text),
               static_cast<uint64_t>(fs::last_write_time(text).time_since_epoch().count())});
  for (const std::string& name : tokenizer.names()) key = mix_key({key, hash_name(name)});
  return fmt::format("{}-{:016x}.npy", text.filename().string(), key);
}

}  // namespace

Tensor tokenise(std::string_view text, const Tokenizer& tokenizer) {
  const DType type = type_for(tokenizer.size());
  std::string all;
  for_each_piece(text, tokenizer, type, [&](const std::string& bytes) { all += bytes; });
  Tensor tokens({static_cast<int64_t>(all.size() / size_of(type))}, type);
  std::memcpy(tokens.raw(), all.data(), all.size());
  return tokens;
}

Tensor token_file(const fs::path& text, const Tokenizer& tokenizer, const fs::path& folder) {
  const fs::path file = folder / file_name(text, tokenizer);
  if (fs::exists(file)) return read_npy(file);
  fs::create_directories(folder);
  const fs::path temporary = fmt::format("{}.{}", file.string(), ::getpid());
  const DType type = type_for(tokenizer.size());
  size_t size = 0;
  {
    std::ofstream out(temporary, std::ios::binary);
    out << npy_header(type, 0);
    const Bytes content = map_file(text);
    for_each_piece(content.text(), tokenizer, type, [&](const std::string& bytes) {
      out << bytes;
      size += bytes.size();
    });
    out.seekp(0);
    out << npy_header(type, static_cast<int64_t>(size / size_of(type)));
    out.flush();
    require(out.good(), ErrorKind::io, "[{}] cannot write the tokens of {}: {}", temporary.string(),
            text.string(), std::strerror(errno));
  }
  fs::rename(temporary, file);
  return read_npy(file);
}

}  // namespace artel::data
