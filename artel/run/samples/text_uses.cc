#include "artel/run/samples/text_uses.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/time.h"
#include "artel/base/with_where.h"
#include "artel/nn/zoo/llama.h"
#include "artel/nn/zoo/names.h"
#include "artel/predict/sentence_vectors.h"
#include "artel/run/config/setup.h"

namespace artel {
namespace {

// Returns the text added by each further token. WordPiece tokens depend on preceding ones, so the
// whole text is decoded.
class GrowingText {
 public:
  GrowingText(const data::Tokenizer& tokenizer, std::vector<int32_t> prompt,
              const std::function<bool(std::string_view)>& on_text)
      : tokenizer_(tokenizer), tokens_(std::move(prompt)), on_text_(on_text) {
    tell();
  }

  bool add(int32_t token) {
    tokens_.push_back(token);
    return tell();
  }

 private:
  bool tell() {
    const std::string text = tokenizer_.decode(tokens_);
    const size_t told = std::min(std::exchange(told_, text.size()), text.size());
    return on_text_(std::string_view(text).substr(told));
  }

  const data::Tokenizer& tokenizer_;
  std::vector<int32_t> tokens_;
  const std::function<bool(std::string_view)>& on_text_;
  size_t told_ = 0;
};

// A question to a chat model, between the marks that it was trained with (ChatML).
std::string as_question(const std::string& prompt, const TextModel& model,
                        const std::string& source) {
  const std::string begin = "<|im_start|>", end = "<|im_end|>";
  const auto known = [&](const std::string& mark) {
    return std::ranges::count(model.tokenizer->names(), mark) > 0;
  };
  require(known(begin) && known(end), ErrorKind::unsupported,
          "[{}] --chat: the tokenizer lacks the tokens {} and {}, so this is not a ChatML model; "
          "leave --chat out",
          source, begin, end);
  return fmt::format("{0}user\n{2}{1}\n{0}assistant\n", begin, end, prompt);
}

// A sample of lines begins with the line feed that ends the line before it.
std::string prompt_of(const TextRequest& request, const TextModel& model) {
  if (request.chat) return as_question(request.prompt, model, request.source.path);
  const bool begins_line = !model.separator || request.prompt.starts_with('\n');
  return (begins_line ? "" : "\n") + request.prompt;
}

// Networks with rotary positions need a cache only for the positions that the text takes, often far
// fewer than they support. Learned positions are rows of a table, whose size is fixed.
void limit_positions(TextModel& model, const TextRequest& request, int64_t prompt) {
  const bool rotary = model.config.name == "llama";
  require(rotary || request.context == 0, ErrorKind::invalid_argument,
          "[{}] --context: got {} for a network '{}' whose positions are fixed, expected a network "
          "with rotary positions such as llama; leave it out",
          request.source.path, request.context, model.config.name);
  if (!rotary) return;
  require(request.context == 0 || prompt < request.context, ErrorKind::invalid_argument,
          "[{}] --context: got {} for a prompt of {} tokens, expected more", request.source.path,
          request.context, prompt);
  int64_t& positions = model.config.positions;
  if (positions == 0) positions = nn::LlamaOptions().positions;
  positions = std::min(positions, prompt + request.options.tokens);
  if (request.context > 0) positions = std::min(positions, request.context);
}

}  // namespace

WrittenText write_text(const TextRequest& request,
                       const std::function<bool(std::string_view)>& on_text) {
  TextModel model = open_text_model(request.source);
  require(!nn::classifies_texts(model.config.name), ErrorKind::unsupported,
          "[{}] generate: the network classifies texts and does not predict next tokens; try artel "
          "predict RUN --text TEXT",
          request.source.path);
  const std::vector<int32_t> tokens = model.tokenizer->encode(prompt_of(request, model));
  limit_positions(model, request, std::ssize(tokens));
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  Decoder decoder = with_where(request.source.path, [&] {
    return Decoder(make_model(model.config, model.classes), model.weights,
                   request.threads > 0 ? request.threads : std::max(1, cores), model.window,
                   request.device);
  });
  GenerateOptions options = request.options;
  options.vocabulary = model.tokenizer->size();  // the network may have more
  options.separator = model.separator;
  // The last token is written, but not read.
  const int64_t length = static_cast<int64_t>(tokens.size()) + options.tokens - 1;
  if (!model.separator)
    warn_of_untrained_positions(model, request.source.path, std::min(length, decoder.positions()));
  std::optional<GrowingText> text;  // once the prompt has been accepted
  WrittenText written = {.weight_bytes = decoder.weight_bytes(),
                         .cache_bytes = decoder.cache_bytes()};
  Clock::time_point first;
  generate(decoder, tokens, options, [&](int32_t token) {
    if (!text) {
      text.emplace(*model.tokenizer, request.chat ? std::vector<int32_t>() : tokens, on_text);
      first = Clock::now();
    }
    ++written.tokens;
    written.seconds = seconds_between(first, Clock::now());
    return token != model.end && text->add(token);
  });
  return written;
}

Tensor text_vectors(const TextSource& source, const std::vector<std::string>& texts) {
  TextModel model = open_text_model(source);
  const auto tokenizer = std::dynamic_pointer_cast<const data::WordPiece>(model.tokenizer);
  require(model.config.name.starts_with("bert") && tokenizer, ErrorKind::unsupported,
          "[{}] embed: got a network '{}', expected one of the BERT family with WordPiece tokens",
          source.path, model.config.name);
  model.config.name = "bert";  // without the head it was trained with
  model.config.untied_head = false;
  model.config.dropout = 0;
  const Tensor tokens = token_rows(*tokenizer, texts, model.config.positions);
  warn_of_untrained_positions(model, source.path, tokens.shape()[1]);
  Cluster cluster;
  Trainer trainer(cluster, make_model(model.config, model.classes));
  trainer.build({DType::i32, {tokens.shape()[1]}});
  with_where(source.path, [&] { trainer.load_weights(model.weights); });
  return mean_vectors(tokens, trainer.predict(tokens));
}

}  // namespace artel
