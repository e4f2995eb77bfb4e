#include <CLI/CLI.hpp>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/run/config/first_config.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string data, out;
  FirstConfigOptions options;
  bool force = false;
};

// "houses.csv.gz" and "photos/" become "houses.toml" and "photos.toml" in the current folder.
fs::path default_file(const std::string& data) {
  fs::path name = fs::path(data).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  name = name.filename();
  while (name.has_extension()) name = name.stem();
  return name.string() + ".toml";
}

void init(Arguments& arguments) {
  const fs::path file =
      arguments.out.empty() ? default_file(arguments.data) : fs::path(arguments.out);
  require(arguments.force || !fs::exists(file), ErrorKind::invalid_argument,
          "[{}] exists already; use -o FILE for another name, or --force to replace it",
          file.string());
  arguments.options.folder = fs::absolute(file).parent_path();
  const FirstConfig first = first_config(arguments.data, arguments.options);
  write_file_atomically(file, first.toml);
  for (const std::string& finding : first.findings) println("{}", finding);
  println("wrote {0}; look at it, then: artel train {0}", shell_word(file.string()));
}

}  // namespace

void add_init(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("init", "Write a first configuration for your own data");
  command
      ->add_option("DATA", arguments->data,
                   "Table (.csv, .tsv), folder of pictures, text (.txt), or arrays (.npz, .npy)")
      ->required();
  command
      ->add_option("--target", arguments->options.target,
                   "Column of a table to predict (default: the last suitable one)")
      ->type_name("COLUMN");
  command->add_option("-o,--out", arguments->out, "File to write (default: DATA's name, .toml)")
      ->type_name("FILE");
  command->add_flag("--force", arguments->force, "Replace the file if it exists");
  command->footer(
      "Examples:\n"
      "  artel init houses.csv --target price\n"
      "  artel init photos -o animals.toml && artel train animals.toml");
  command->callback([arguments] { init(*arguments); });
}

}  // namespace artel::cli
