#include "artel/data/text/token_file.h"

#include <cstring>
#include <fstream>

#include "artel/base/bytes.h"
#include "artel/base/error.h"
#include "artel/base/file_lock.h"
#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/base/with_where.h"
#include "artel/data/text/unicode.h"
#include "artel/tensor/npy.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPiece = size_t{1} << 20;  // bytes of text that are tokenised at a time
constexpr size_t kHeaderBytes = 128;
constexpr const char* kTokensFile = "tokens.npy";
constexpr const char* kElsewhere = "set ARTEL_DATA to a folder with free space";

DType type_for(int64_t vocabulary) {
  if (vocabulary <= 256) return DType::u8;
  return vocabulary <= 32768 ? DType::i16 : DType::i32;
}

// The end of a piece of about kPiece bytes: before white space that follows another character. Uses
// only characters that all tokenizers treat as white space. A form feed is not one of them, because
// WordPiece drops it, which joins words.
size_t piece_end(std::string_view text) {
  const auto space = [&](size_t i) {
    return unicode::is_space(static_cast<unsigned char>(text[i])) && text[i] >= 0;
  };
  for (size_t i = kPiece; i < text.size(); ++i)
    if (space(i) && !space(i - 1) && text[i] != '\v' && text[i] != '\f') return i;
  return text.size();
}

template <typename T>
void append_as(std::string& bytes, const std::vector<int32_t>& tokens) {
  for (const int32_t token : tokens) {
    const auto value = static_cast<T>(token);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
}

// Tokens as bytes of the given type.
std::string packed(const std::vector<int32_t>& tokens, DType type) {
  std::string bytes;
  if (type == DType::u8)
    append_as<uint8_t>(bytes, tokens);
  else if (type == DType::i16)
    append_as<int16_t>(bytes, tokens);
  else
    append_as<int32_t>(bytes, tokens);
  return bytes;
}

// Calls write(bytes, end) for the tokens of each piece, which ends at offset `end` of the text.
template <typename Write>
void for_each_piece(const Bytes& text, const Tokenizer& tokenizer, DType type, const Write& write) {
  for (size_t begin = 0; begin < text.data.size();) {
    const std::string_view rest = text.text().substr(begin);
    const std::string_view piece = rest.substr(0, piece_end(rest));
    const auto tokens = with_where(fmt::format("{}, from byte {} on", text.name, begin),
                                   [&] { return tokenizer.encode(piece); });
    begin += piece.size();
    write(packed(tokens, type), begin);
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

// A hash of the content of a file. Reads the whole file, which is much faster than tokenising it;
// size and modification time alone could match another text.
uint64_t stamp(const fs::path& file) { return hash_name(map_file(file).text()); }

// The same for a tokenizer: a hash of its name, or of the files it is read from.
uint64_t tokenizer_stamp(const std::string& tokenizer) {
  uint64_t key = hash_name(tokenizer);
  if (!fs::exists(tokenizer)) return key;
  const fs::path path = tokenizer;
  if (path.extension() == ".gguf") return mix_key({key, stamp(path)});
  for (const fs::path& file : tokenizer_files(fs::is_directory(path) ? path : path.parent_path()))
    key = mix_key({key, stamp(file)});
  return key;
}

TokenizerPtr tokenizer_for(const Bytes& text, const std::string& name) {
  require(!text.data.empty(), ErrorKind::invalid_argument, "[{}] the text is empty", text.name);
  return with_where(text.name, [&] { return make_tokenizer(name, text.text()); });
}

// Logs from time to time how much of a text is done.
class Progress {
 public:
  explicit Progress(const Bytes& text) : text_(text) {}

  void operator()(size_t done) {
    if (seconds_between(last_, Clock::now()) < kSecondsBetween) return;
    last_ = Clock::now();
    log(LogLevel::info, "{}: {} % tokenised", text_.name, 100 * done / text_.data.size());
  }

 private:
  static constexpr double kSecondsBetween = 5;
  const Bytes& text_;
  Clock::time_point last_ = Clock::now();
};

void write_tokens(const Bytes& text, const Tokenizer& tokenizer, const fs::path& file) {
  const DType type = type_for(tokenizer.size());
  std::ofstream out(file, std::ios::binary);
  const auto check = [&] {
    require(out.good(), ErrorKind::io, "[{}] cannot write the tokens of {}: {}; {}", file.string(),
            text.name, std::strerror(errno), kElsewhere);
  };
  out << npy_header(type, 0);
  size_t size = 0;
  Progress progress(text);
  for_each_piece(text, tokenizer, type, [&](const std::string& bytes, size_t end) {
    out << bytes;
    check();
    size += bytes.size();
    progress(end);
  });
  out.seekp(0);
  out << npy_header(type, static_cast<int64_t>(size / size_of(type)));
  out.flush();
  check();
}

void fill_folder(const fs::path& path, const std::string& tokenizer_name, const fs::path& folder) {
  const fs::path unfinished = folder.string() + ".unfinished";
  fs::remove_all(unfinished);
  fs::create_directories(unfinished);
  const Bytes text = map_file(path);
  log(LogLevel::info, "{}: tokenising {} once, into {}", path.string(),
      format_bytes(static_cast<double>(text.data.size())), folder.string());
  try {
    const TokenizerPtr tokenizer = tokenizer_for(text, tokenizer_name);
    tokenizer->save(unfinished);
    write_tokens(text, *tokenizer, unfinished / kTokensFile);
  } catch (...) {
    fs::remove_all(unfinished);
    throw;
  }
  fs::rename(unfinished, folder);
}

}  // namespace

TokenisedText tokenise_file(const fs::path& path, const std::string& tokenizer_name) {
  const Bytes text = map_file(path);
  const TokenizerPtr tokenizer = tokenizer_for(text, tokenizer_name);
  const DType type = type_for(tokenizer->size());
  std::string all;
  for_each_piece(text, *tokenizer, type, [&](const std::string& bytes, size_t) { all += bytes; });
  Tensor tokens({static_cast<int64_t>(all.size() / size_of(type))}, type);
  std::memcpy(tokens.raw(), all.data(), all.size());
  return {tokenizer, tokens};
}

TokenisedText tokenise_once(const fs::path& text, const std::string& tokenizer,
                            const fs::path& folder) {
  const uint64_t key = mix_key({stamp(text), tokenizer_stamp(tokenizer)});
  const fs::path kept = folder / fmt::format("{}-{:016x}", text.filename().string(), key);
  if (!fs::exists(kept)) {
    std::error_code problem;
    fs::create_directories(folder, problem);
    require(!problem, ErrorKind::io, "[{}] cannot make a folder for the tokens of {}: {}; {}",
            folder.string(), text.string(), problem.message(), kElsewhere);
    const FileLock lock(folder / "lock");
    if (!fs::exists(kept)) fill_folder(text, tokenizer, kept);
  }
  return {open_tokenizer(kept), read_npy(kept / kTokensFile)};
}

}  // namespace artel::data
