#include <CLI/CLI.hpp>

#include "artel/base/log.h"
#include "artel/cli/commands.h"
#include "artel/observe/table.h"
#include "artel/predict/sentence_vectors.h"
#include "artel/run/samples/text_uses.h"
#include "artel/tensor/npy.h"

namespace artel::cli {
namespace {

struct Arguments {
  std::string source, out;
  std::vector<std::string> texts;
};

void show_cosines(const std::vector<std::string>& texts, const Tensor& vectors) {
  const Tensor products = cosines(vectors);
  std::vector<std::string> header = {"cosine"};
  for (size_t i = 0; i < texts.size(); ++i) header.push_back(fmt::format("{}", i + 1));
  observe::Table table(header);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<std::string> row = {fmt::format("{} {}", i + 1, texts[i])};
    for (size_t j = 0; j < texts.size(); ++j)
      row.push_back(fmt::format("{:.4f}", products.values<float>()[i * texts.size() + j]));
    table.add(row);
  }
  fmt::print("{}", table.text());
}

void embed(const Arguments& arguments) {
  const Tensor vectors = text_vectors({.path = arguments.source}, arguments.texts);
  if (arguments.out.empty()) return show_cosines(arguments.texts, vectors);
  write_npy(arguments.out, vectors);
  println("{}: {} vectors of {} numbers", arguments.out, vectors.shape()[0], vectors.shape()[1]);
}

}  // namespace

void add_embed(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "embed", "Turn texts into vectors with a BERT, and show how similar they are");
  command
      ->add_option("SOURCE", arguments->source,
                   "Run, checkpoint, folder of a published model, or its name in `artel data list`")
      ->required();
  command->add_option("TEXT", arguments->texts, "Texts, in quotes")->required();
  command
      ->add_option(
          "--out", arguments->out,
          "Write the vectors to this file, one row per text, instead of printing their cosines")
      ->type_name("FILE.npy");
  command->footer(
      "A text's vector is the mean of the network's last hidden states over its tokens, scaled to\n"
      "length 1.\n\n"
      "Examples:\n"
      "  artel embed minilm \"That is a happy person\" \"That is a happy dog\"\n"
      "  artel embed runs/bert_pretrain \"peace and war\" \"the budget\" --out vectors.npy");
  command->callback([arguments] { embed(*arguments); });
}

}  // namespace artel::cli
