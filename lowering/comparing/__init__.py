"""Two given programs, one question: does the second do what the first does, up to the layouts of its parameters?"""
