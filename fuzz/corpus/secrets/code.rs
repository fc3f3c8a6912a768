let key = "a8Fj20kLmQ91xZ7cVb44"; // const PASSWORD: &str = "hunter22hunter";
