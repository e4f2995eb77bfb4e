#include "artel/cli/program.h"
#include "artel/base/version.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <new>

#include "artel/base/disk.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/cluster/launcher.h"

namespace artel::cli {
namespace {

constexpr int kFailure = 1, kUsage = 2;

int report(int code, std::string_view text) {
  std::fflush(stdout);
  tell(stderr, fmt::format("artel: error: {}\n", printable(text)));
  return code;
}

// The cause of an error without who has noticed it: "x" of "[comm] worker 1: x (reported by rank
// 1)".
std::string_view cause_of(std::string_view text) {
  const auto drop = [&](std::string_view beginning) {
    const bool found = text.starts_with(beginning);
    if (found) text.remove_prefix(beginning.size());
    return found;
  };
  drop("[comm] ");
  if (drop("worker ") || drop("server ")) {
    text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
    if (drop(" on ")) text.remove_prefix(std::min(text.find(": "), text.size()));
    drop(": ");
  }
  return text.substr(0, text.rfind(" (reported by rank "));
}

// Workers that fail for the same reason say so once. Settings are the same for all; for other
// reasons it matters who has failed.
int report_once(const Error& error) {
  const std::string_view text = error.what(), cause = cause_of(text);
  if (!is_first_to_say(cause)) return kFailure;
  const std::string name = own_name();
  const bool concerns_all =
      error.kind() == ErrorKind::invalid_argument || error.kind() == ErrorKind::communication;
  if (name.empty() || concerns_all || cause != text) return report(kFailure, text);
  return report(kFailure, fmt::format("{}: {}", name, text));
}

// A misspelt command would otherwise be reported as an extra argument.
std::string unknown_command(const CLI::App& program, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  if (word.starts_with('-') || std::find(names.begin(), names.end(), word) != names.end())
    return "";
  return fmt::format("unknown command '{}'{}; the commands are {}", word, did_you_mean(word, names),
                     join(names, ", "));
}

// What was printed may not have arrived, on a full disk for example.
int after_printing(int code) {
  errno = 0;
  const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (written || code != 0) return code;
  return report(kFailure, fmt::format("[standard output] cannot be written{}",
                                      errno == 0 ? std::string()
                                                 : fmt::format(": {}", std::strerror(errno))));
}

int usage_error(const CLI::App& program, const CLI::ParseError& error) {
  std::string name = "artel";
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    name += ' ' + app->get_name();
  }
  return report(kUsage,
                fmt::format("{}; try '{} --help'", split(error.what(), '\n').front(), name));
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App program("Trains neural networks on many inexpensive machines.", "artel");
  program.set_version_flag("--version", fmt::format("artel {}", kHeaderVersion));
  program.require_subcommand(1);
  program.footer(
      "Examples:\n"
      "  artel data get fashion_mnist\n"
      "  artel train examples/fashion_mnist.toml\n"
      "  artel train examples/fashion_mnist.toml --set train.epochs=2 --out runs/short\n"
      "  artel evaluate runs/fashion_mnist\n"
      "`artel COMMAND --help` explains a command.");
  add_init(program);
  add_train(program);
  add_evaluate(program);
  add_predict(program);
  add_generate(program);
  add_embed(program);
  add_features(program);
  add_fit(program);
  add_finetune(program);
  add_advise(program);
  add_pretrain(program);
  add_probe(program);
  add_adapters(program);
  add_info(program);
  add_plan(program);
  add_data(program);
  add_models(program);
  add_search(program);
  add_comm(program);
  add_bench(program);
  add_config(program);
  add_verify(program);
  add_compare(program);
  add_sweep(program);
  add_launch(program);
  add_leave(program);
  add_runs(program);
  add_top(program);
  add_trace(program);
  add_export(program);
  add_dashboard(program);
  add_serve(program);

  if (argc > 1)
    if (const std::string problem = unknown_command(program, argv[1]); !problem.empty())
      return report(kUsage, problem);
  try {
    program.parse(argc, argv);
    return after_printing(0);
  } catch (const CLI::Success& success) {  // --help, --version
    return after_printing(program.exit(success));
  } catch (const CLI::RuntimeError& exit) {  // a command's own exit code
    return exit.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return usage_error(program, error);
  } catch (const Error& error) {
    // Every worker learns of a failure elsewhere; one line is enough.
    const bool echo = error.kind() == ErrorKind::communication && !speaks_for_the_run();
    return echo ? kFailure : report_once(error);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(kFailure, io_error(error).what());
  } catch (const std::bad_alloc&) {
    return report(kFailure, "out of memory");
  } catch (const std::exception& error) {
    return report(kFailure, error.what());
  }
}

}  // namespace artel::cli
