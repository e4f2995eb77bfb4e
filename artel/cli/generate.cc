#include <CLI/CLI.hpp>
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cli/shared_arguments.h"
#include "artel/observe/terminal.h"
#include "artel/run/samples/text_uses.h"

namespace artel::cli {
namespace {

struct Arguments {
  TextRequest request = {.prompt = "\n"};
  bool speed = false;
};

void generate_text(const Arguments& arguments) {
  const WrittenText written = write_text(arguments.request, [](std::string_view text) {
    fmt::print("{}", observe::is_terminal(stdout) ? printable(text) : std::string(text));
    std::fflush(stdout);
    return true;
  });
  fmt::print("\n");
  if (arguments.speed && written.tokens > 1) {
    const double rate = static_cast<double>(written.tokens - 1) / written.seconds;
    tell(stderr, fmt::format("{:.1f} tokens/s, {:.2f} GB/s of weights\n", rate,
                             rate * static_cast<double>(written.weight_bytes) * 1e-9));
  }
}

}  // namespace

void add_generate(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  TextRequest& request = arguments->request;
  GenerateOptions& options = request.options;
  CLI::App* command =
      program.add_subcommand("generate", "Write text with a trained language model");
  command
      ->add_option("SOURCE", request.source.path,
                   "Run, checkpoint, GGUF file, or folder of a published model")
      ->required();
  command->add_option("--prompt", request.prompt, "Beginning of the text (default: a new line)")
      ->type_name("TEXT");
  command->add_option("--tokens", options.tokens, "Number of tokens to add")
      ->type_name("N")
      ->check(at_least(1))
      ->capture_default_str();
  command
      ->add_option("--temperature", options.sampling.temperature,
                   "Sampling temperature; 0: always the likeliest token")
      ->type_name("T")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--top-k", options.sampling.top_k, "Only the K likeliest tokens; 0: all")
      ->type_name("K")
      ->check(at_least(0))
      ->capture_default_str();
  command
      ->add_option("--top-p", options.sampling.top_p,
                   "Only the likeliest tokens with total probability P (nucleus sampling)")
      ->type_name("P")
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Random seed of the sampling")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--context", request.context,
                   "Maximum number of tokens that a network with rotary positions sees; 0: the "
                   "prompt and all new tokens")
      ->type_name("N")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--threads", request.threads, "Cores to use; 0: all")
      ->type_name("N")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--device", request.device, "cpu, opencl, opencl:N, or auto")
      ->type_name("DEVICE")
      ->capture_default_str();
  command->add_flag("--chat", request.chat,
                    "Send the prompt to a chat model as a question, and print only its answer");
  command->add_flag("--speed", arguments->speed, "Report the speed on standard error");
  command->footer(
      "The text is printed as it is generated. When the network runs out of positions, it rereads\n"
      "the last half of the text and continues from there. The same seed gives the same text.\n\n"
      "Examples:\n"
      "  artel generate runs/char_gpt --prompt \"ROMEO:\" --tokens 500\n"
      "  artel generate runs/char_gpt --temperature 0.8 --top-k 20 --seed 7\n"
      "  artel generate models/gpt2 --prompt \"The meaning of life is\" --top-p 0.9\n"
      "  artel generate SmolLM2-135M-Instruct.Q4_1.gguf --chat --prompt \"Why is the sky blue?\"");
  command->callback([arguments] { generate_text(*arguments); });
}

}  // namespace artel::cli
