// How fast text is generated, compared with what memory bandwidth allows.
#pragma once

namespace CLI {
class App;
}

namespace artel::cli {

// Adds `generate` to the command `bench`.
void add_generation_bench(CLI::App& bench);

}  // namespace artel::cli
