
#include "artel/predict/generate.h"
#include <CLI/CLI.hpp>
#include <thread>
#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/base/with_where.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/observe/terminal.h"
#include "artel/run/setup.h"
#include "artel/run/text_model.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string source, prompt = "\n";
  GenerateOptions options;
  int threads = 0;
  bool speed = false;
};

// Writes what each further token adds to the text. WordPiece tokens depend on what precedes them,
// so the text is decoded as a whole.
class Writer {
 public:
  Writer(const data::Tokenizer& tokenizer, std::vector<int32_t> prompt)
      : tokenizer_(tokenizer), tokens_(std::move(prompt)) {
    write();
  }

  void add(int32_t token) {
    tokens_.push_back(token);
    write();
  }

 private:
  void write() {
    const std::string text = tokenizer_.decode(tokens_);
    const std::string next = text.substr(std::min(written_, text.size()));
    fmt::print("{}", observe::is_terminal(stdout) ? printable(next) : next);
    std::fflush(stdout);
    written_ = text.size();
  }

  const data::Tokenizer& tokenizer_;
  std::vector<int32_t> tokens_;
  size_t written_ = 0;
};

void generate_text(const Arguments& arguments) {
  const TextModel model = open_text_model(arguments.source);
  // A sample of lines begins with the line feed that ends the line before it.
  const bool begins_line = !model.separator || arguments.prompt.starts_with('\n');
  const std::vector<int32_t> prompt =
      model.tokenizer->encode((begins_line ? "" : "\n") + arguments.prompt);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int threads = arguments.threads > 0 ? arguments.threads : std::max(1, cores);
  Decoder decoder = with_where(arguments.source, [&] {
    return Decoder(make_model(model.config, model.classes), model.weights, threads, model.window);
  });
  std::optional<Writer> writer;  // once the prompt has been accepted
  std::optional<Clock::time_point> first;
  int64_t count = 0;
  GenerateOptions options = arguments.options;
  options.vocabulary = model.tokenizer->size();  // the network may have more
  options.separator = model.separator;
  // The last token is written, but not read.
  const int64_t length = static_cast<int64_t>(prompt.size()) + options.tokens - 1;
  if (!model.separator)
    warn_of_untrained_positions(model, arguments.source, std::min(length, decoder.positions()));
  generate(decoder, prompt, options, [&](int32_t token) {
    if (!writer) writer.emplace(*model.tokenizer, prompt);
    if (!first) first = Clock::now();
    ++count;
    writer->add(token);
    return true;
  });
  fmt::print("\n");
  if (arguments.speed && count > 1) {
    const double rate = static_cast<double>(count - 1) / seconds_between(*first, Clock::now());
    tell(stderr, fmt::format("{:.1f} tokens/s, {:.2f} GB/s of weights\n", rate,
                             rate * static_cast<double>(decoder.weight_bytes()) * 1e-9));
  }
}

}  // namespace

void add_generate(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  GenerateOptions& options = arguments->options;
  CLI::App* command =
      program.add_subcommand("generate", "Write text with a trained language model");
  command
      ->add_option("SOURCE", arguments->source, "Run, checkpoint, or folder of a published model")
      ->required();
  command->add_option("--prompt", arguments->prompt, "How the text begins (default: a new line)")
      ->type_name("TEXT");
  command->add_option("--tokens", options.tokens, "How many tokens to add")
      ->type_name("N")
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_option("--temperature", options.sampling.temperature,
                   "Below 1: likelier tokens; above 1: less likely ones; 0: always the likeliest")
      ->type_name("T")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--top-k", options.sampling.top_k, "Only the K likeliest tokens; 0: all")
      ->type_name("K")
      ->check(at_least(0))
      ->capture_default_str();
  command
      ->add_option("--top-p", options.sampling.top_p,
                   "Only the likeliest tokens that together have the probability P")
      ->type_name("P")
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Another seed gives another text")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--threads", arguments->threads, "Cores to use; 0: all")
      ->type_name("N")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_flag("--speed", arguments->speed, "Report the speed on standard error");
  command->footer(
      "The text is printed as it is generated. When the network runs out of positions, it rereads\n"
      "the last half of the text and continues from there. The same seed gives the same text.\n\n"
      "Examples:\n"
      "  artel generate runs/char_gpt --prompt \"ROMEO:\" --tokens 500\n"
      "  artel generate runs/char_gpt --temperature 0.8 --top-k 20 --seed 7\n"
      "  artel generate models/gpt2 --prompt \"The meaning of life is\" --top-p 0.9");
  command->callback([arguments] { generate_text(*arguments); });
}

}  // namespace artel::cli
