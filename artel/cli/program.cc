#include "artel/cli/program.h"
#include "artel/base/version.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <new>

#include "artel/base/disk.h"
#include "artel/base/log.h"
#include "artel/base/registry.h"
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

// A misspelt command would otherwise be reported as an extra argument.
std::string unknown_command(const CLI::App& program, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  if (word.starts_with('-') || std::find(names.begin(), names.end(), word) != names.end())
    return "";
  return fmt::format("unknown command '{}'{}; the commands are {}", word, did_you_mean(word, names),
                     join(names, ", "));
}

// Detects lost output, for example on a full disk.
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

void add_builtin_commands(CLI::App& program) {
  for (const auto add :
       {add_init,     add_train,    add_evaluate, add_predict, add_generate,  add_embed,
        add_features, add_fit,      add_finetune, add_advise,  add_pretrain,  add_probe,
        add_adapters, add_quantise, add_distil,   add_prune,   add_shrink,    add_info,
        add_plan,     add_data,     add_models,   add_search,  add_comm,      add_bench,
        add_config,   add_verify,   add_compare,  add_sweep,   add_launch,    add_leave,
        add_runs,     add_top,      add_trace,    add_export,  add_dashboard, add_serve,
        add_devices,  add_simulate})
    add(program);
}

Registry<Command>& own_commands() {
  static Registry<Command> all("command", {}, Names::words);
  return all;
}

void add_own_command(CLI::App& program, const Command& command) {
  CLI::App* const added = program.add_subcommand(command.name, command.help);
  added->prefix_command();
  added->callback([added, &command] {
    if (const int code = command.run(added->remaining()); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace

void register_command(Command command) {
  require_function("command", command.name, command.run);
  CLI::App builtin;
  add_builtin_commands(builtin);
  for (const CLI::App* known : builtin.get_subcommands({}))
    require(known->get_name() != command.name, ErrorKind::invalid_argument,
            "command '{}' comes with Artel; try another name", command.name);
  std::string name = command.name;
  own_commands().add(std::move(name), std::move(command));
}

std::optional<std::string> report_of(const Error& error) {
  // Every worker learns of a failure elsewhere; one line is enough.
  if (error.kind() == ErrorKind::communication && !speaks_for_the_run()) return {};
  if (!is_first_to_say(error.cause())) return {};
  const std::string text = error.what();
  const std::string name = own_name();
  // Settings are the same for all; for other reasons it matters who has failed.
  const bool concerns_all =
      error.kind() == ErrorKind::invalid_argument || error.kind() == ErrorKind::communication;
  return name.empty() || concerns_all || error.report() ? text : fmt::format("{}: {}", name, text);
}

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
  add_builtin_commands(program);
  for (const Command* command : own_commands().all()) add_own_command(program, *command);

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
    const std::optional<std::string> text = report_of(error);
    return text ? report(kFailure, *text) : kFailure;
  } catch (const std::filesystem::filesystem_error& error) {
    return report(kFailure, io_error(error).what());
  } catch (const std::bad_alloc&) {
    return report(kFailure, "out of memory");
  } catch (const std::exception& error) {
    return report(kFailure, error.what());
  }
}

}  // namespace artel::cli
