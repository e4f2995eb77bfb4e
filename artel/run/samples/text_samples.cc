#include "artel/run/samples/text_samples.h"

#include <algorithm>

#include "artel/base/appended_file.h"
#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/base/with_where.h"
#include "artel/predict/generate.h"
#include "artel/run/samples/text_model.h"

namespace artel {
namespace {

constexpr const char* kPromptKey = "observe.sample_prompt";
constexpr size_t kPromptTokens = 8;
constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;

// The first tokens of the first sample; of a line only one, because it may be short.
std::vector<int32_t> beginning_of(const data::Dataset& set, bool lines) {
  std::vector<int32_t> tokens(static_cast<size_t>(set.layout().input.elements()));
  std::vector<std::byte> target(set.layout().target_bytes());
  set.read(0, std::as_writable_bytes(std::span(tokens)), target);
  tokens.resize(std::min(tokens.size(), lines ? 1 : kPromptTokens));
  return tokens;
}

bool is_of(const std::string& line, int64_t last_step) {
  const auto json = json_or_null(line);
  return json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
         json["step"].get<int64_t>() <= last_step;
}

}  // namespace

TextSamples::TextSamples(const RunConfig& config, const data::Dataset& set)
    : window_(config.data.context),
      all_positions_(!config.model.weights.empty()),
      tokenizer_(set.layout().tokenizer),
      separator_(tokenizer_ ? sample_separator(config.data, *tokenizer_) : std::nullopt) {
  const bool predicts_tokens = tokenizer_ && set.layout().classes == tokenizer_->size() &&
                               set.layout().input.rank() == 1 && set.size() > 0;
  if (!predicts_tokens) return;
  tokens_ = config.observe.sample_tokens;
  const std::string& prompt = config.observe.sample_prompt;
  if (!wanted()) return;
  if (prompt.empty()) {
    prompt_ = beginning_of(set, config.data.lines);
    return;
  }
  prompt_ = with_where(kPromptKey, [&] { return tokenizer_->encode(prompt); });
  const auto length = static_cast<int64_t>(prompt_.size());
  require(length <= window_, ErrorKind::invalid_argument,
          "[{}] got {}, expected at most the {} of data.context; try a shorter one", kPromptKey,
          counted(length, "token"), window_);
}

void TextSamples::begin(const std::filesystem::path& file, int64_t step) const {
  if (!std::filesystem::exists(file)) return;
  std::string kept;
  for (const std::string& line : split(read_file(file, kMostTextBytes), '\n'))
    if (is_of(line, step)) kept.append(line) += '\n';
  write_file_atomically(file, kept);
}

std::optional<TextSamples::Text> TextSamples::write(const Model& model, Parameters& weights,
                                                    int threads) {
  try {
    return generate(model, weights, threads);
  } catch (const Error& error) {
    tokens_ = 0;
    const bool expected = error.kind() == ErrorKind::unsupported;
    log(expected ? LogLevel::debug : LogLevel::warning,
        "{}; no more texts are written to texts.jsonl", error.what());
    return {};
  }
}

TextSamples::Text TextSamples::generate(const Model& model, Parameters& weights,
                                        int threads) const {
  Decoder decoder(model, weights, threads, window_);
  const auto length = static_cast<int64_t>(prompt_.size());
  GenerateOptions options = {
      .tokens = tokens_, .vocabulary = tokenizer_->size(), .separator = separator_};
  if (!all_positions_ && !separator_ && decoder.positions() > window_)
    options.tokens = std::clamp<int64_t>(window_ - length + 1, 1, tokens_);
  std::vector<int32_t> all = prompt_;
  artel::generate(decoder, prompt_, options, [&](int32_t token) {
    all.push_back(token);
    return true;
  });
  Text result = {tokenizer_->decode(prompt_), tokenizer_->decode(all)};
  result.text.erase(0, result.prompt.size());
  return result;
}

void TextSamples::append(const std::filesystem::path& file, int64_t step, int64_t epoch,
                         const Text& text) const {
  const nlohmann::ordered_json line = {
      {"step", step}, {"epoch", epoch}, {"prompt", text.prompt}, {"text", text.text}};
  AppendedFile lines(file);
  lines.append(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
  lines.flush();
}

}  // namespace artel
