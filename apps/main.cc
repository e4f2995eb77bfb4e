#include "artel/cli/program.h"

int main(int argc, char** argv) { return artel::cli::run(argc, argv); }
