// Measures the speed of text generation, compared with the bound by memory bandwidth.
#pragma once

namespace CLI {
class App;
}

namespace artel::cli {

// Adds `generate` to the command `bench`.
void add_generation_bench(CLI::App& bench);

}  // namespace artel::cli
