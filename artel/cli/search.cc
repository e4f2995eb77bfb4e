#include <unistd.h>

#include <CLI/CLI.hpp>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/cli/commands.h"
#include "artel/data/cores.h"
#include "artel/data/images/image_folder.h"
#include "artel/observe/table.h"
#include "artel/transfer/picture_search.h"

namespace artel::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownProblems = 5;

struct Arguments {
  std::string folder, like, base = "faces", html;
  bool group = false;
  int64_t most = 20;
  float threshold = 0;  // 0: of the base
  int threads = 0;
};

transfer::PictureVectors embed_folder(const transfer::Base& base, const Arguments& arguments,
                                      int threads) {
  require(fs::is_directory(arguments.folder), ErrorKind::not_found,
          "[{}] no such folder, expected one with pictures", arguments.folder);
  const std::vector<fs::path> files = data::pictures_in(arguments.folder);
  require(!files.empty(), ErrorKind::not_found,
          "[{}] holds no pictures, expected .jpg, .jpeg or .png", arguments.folder);
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const auto progress = [&](int64_t done, int64_t all) {
    if (terminal)
      fmt::print(stderr, "\r{} of {}{}", format_count(done), counted(all, "picture"),
                 done == all ? "\n" : "\x1b[K");
  };
  transfer::PictureVectors pictures =
      transfer::embed_pictures(base, files, {.threads = threads, .progress = progress});
  if (!pictures.broken.empty()) {
    log(LogLevel::warning, "left out, since they cannot be read: {}",
        counted(std::ssize(pictures.broken), "picture"));
    for (size_t i = 0; i < std::min(pictures.broken.size(), kShownProblems); ++i)
      log(LogLevel::warning, "{}", pictures.broken[i]);
  }
  return pictures;
}

// The default for other bases: the distance of unit vectors at an angle of 35 degrees.
float threshold_of(const Arguments& arguments) {
  return arguments.threshold > 0 ? arguments.threshold : 0.6f;
}

std::string shown_path(const fs::path& file, const std::string& folder) {
  return fs::relative(file, folder).string();
}

void write_page(const Arguments& arguments, const std::string& title,
                const std::vector<transfer::ThumbnailSection>& sections) {
  if (arguments.html.empty()) return;
  write_file_atomically(arguments.html, transfer::thumbnail_page(title, sections));
  println("{}: the same with thumbnails", arguments.html);
}

void find_like(const Arguments& arguments, const transfer::Base& base, ThreadPool& pool) {
  const transfer::PictureVectors asked =
      transfer::embed_pictures(base, {arguments.like}, {.threads = 1});
  const transfer::PictureVectors all = embed_folder(base, arguments, pool.threads());
  const auto index = transfer::make_index(all.vectors);
  const transfer::Neighbours found = index->nearest(pool, asked.vectors, arguments.most)[0];
  const float threshold = threshold_of(arguments);
  observe::Table table({"distance", "picture", ""});
  transfer::ThumbnailSection like{"The picture", {arguments.like}, {arguments.like}};
  transfer::ThumbnailSection same{"The same", {}, {}}, others{"The nearest others", {}, {}};
  for (const transfer::Neighbour& each : found) {
    const bool near = each.distance < threshold;
    const std::string name = shown_path(all.files[each.row], arguments.folder);
    table.add({fmt::format("{:.3f}", each.distance), name, near ? "the same" : ""});
    transfer::ThumbnailSection& section = near ? same : others;
    section.files.push_back(all.files[each.row]);
    section.captions.push_back(fmt::format("{:.3f} {}", each.distance, name));
  }
  fmt::print("{}", table.text());
  println("{} of {} are nearer than {:.2f}", counted(std::ssize(same.files), "picture"),
          format_count(std::ssize(all.files)), threshold);
  write_page(arguments, "Like " + arguments.like, {like, same, others});
}

void find_groups(const Arguments& arguments, const transfer::Base& base, ThreadPool& pool) {
  const transfer::PictureVectors all = embed_folder(base, arguments, pool.threads());
  const auto index = transfer::make_index(all.vectors);
  const auto groups = transfer::group_alike(pool, *index, all.vectors, threshold_of(arguments));
  observe::Table table({"group", "pictures", "such as"});
  std::vector<transfer::ThumbnailSection> sections;
  transfer::ThumbnailSection alone{"Alone", {}, {}};
  for (size_t i = 0; i < groups.size(); ++i) {
    const bool single = groups[i].size() == 1;
    transfer::ThumbnailSection section{
        fmt::format("Group {}: {}", i + 1, counted(std::ssize(groups[i]), "picture")), {}, {}};
    for (const int64_t row : groups[i]) {
      transfer::ThumbnailSection& to = single ? alone : section;
      to.files.push_back(all.files[row]);
      to.captions.push_back(shown_path(all.files[row], arguments.folder));
    }
    if (single) continue;
    std::vector<std::string> some(
        section.captions.begin(),
        section.captions.begin() + std::min<size_t>(3, section.captions.size()));
    table.add({fmt::format("{}", i + 1), format_count(std::ssize(groups[i])), join(some, ", ")});
    sections.push_back(std::move(section));
  }
  fmt::print("{}", table.text());
  println("{}, {} alone", counted(std::ssize(sections), "group"),
          counted(std::ssize(alone.files), "picture"));
  if (!alone.files.empty()) sections.push_back(std::move(alone));
  write_page(arguments, "Groups of " + arguments.folder, sections);
}

void search(const Arguments& arguments) {
  require(arguments.group != !arguments.like.empty(), ErrorKind::invalid_argument,
          "give either --like PICTURE or --group");
  ThreadPool pool(arguments.threads > 0 ? arguments.threads : data::all_cores());
  const transfer::Base base = transfer::load_base(arguments.base);
  if (arguments.group)
    find_groups(arguments, base, pool);
  else
    find_like(arguments, base, pool);
}

}  // namespace

void add_search(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_subcommand("search", "Find photographs of the same person or thing in a folder");
  command
      ->add_option("FOLDER", arguments->folder,
                   "Folder of pictures (.jpg, .jpeg, .png), including subfolders")
      ->required();
  command->add_option("--like", arguments->like, "Find pictures similar to this one")
      ->type_name("PICTURE");
  command->add_flag("--group", arguments->group, "Group similar pictures");
  command
      ->add_option("--base", arguments->base,
                   "Network that computes the features: a name from `artel models list`, or a run")
      ->capture_default_str();
  command->add_option("--most", arguments->most, "Maximum number of pictures to show")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--threshold", arguments->threshold,
                   "Distance below which two pictures match (default: 0.6)")
      ->check(CLI::PositiveNumber);
  command->add_option("--html", arguments->html, "Also write a page with thumbnails")
      ->type_name("FILE.html");
  command->add_option("--threads", arguments->threads, "Cores to use (default: all)")
      ->check(CLI::PositiveNumber);
  command->footer(
      "With the base `faces` pictures should show one face each, cut out like a passport "
      "photograph.\n"
      "Up to 100,000 pictures are compared one by one; more are searched by an approximate "
      "index.\n\n"
      "Examples:\n"
      "  artel search photos --like anna.jpg --html anna.html\n"
      "  artel search photos --group --html people.html\n"
      "  artel search photos --like cat.jpg --base resnet50_keras --most 50");
  command->callback([arguments] { search(*arguments); });
}

}  // namespace artel::cli
