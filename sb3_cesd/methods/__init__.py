"""Methods that CeSD is compared with. Each is one file: reward, algorithm, defaults and search space."""
